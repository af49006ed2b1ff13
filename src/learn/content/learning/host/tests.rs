//! Tests of [`learn_host`]: which rules are learned from captures of one host.

use super::*;

/// The rules that are learned from captures of URLs, as texts.
fn learned(captures: &[(String, u64)]) -> Vec<String> {
    learned_with(captures, &DocumentEvidence::default())
}

fn learned_with(captures: &[(String, u64)], documents: &DocumentEvidence) -> Vec<String> {
    let mut sorted = captures.to_vec();
    sorted.sort();
    let mut host = HostCaptures::default();
    sorted.iter().for_each(|(uri, content)| host.push(uri.as_bytes(), *content));
    let rules = learn_host(&host, documents, &ContentLimits::default()).rules.into_iter();
    rules
        .filter(|rule| rule.refusal.is_none())
        .map(|rule| format!("{} {}", rule.rule.rule, rule.rule.context))
        .collect()
}

fn urls(count: u64, of: impl Fn(u64, u64) -> (String, u64)) -> Vec<(String, u64)> {
    (0..count).flat_map(|page| (0..5).map(move |copy| (page, copy))).map(|(page, copy)| of(page, copy)).collect()
}

/// A value that looks made.
fn token(page: u64, copy: u64) -> String {
    format!("{:032x}", u128::from(page * 5 + copy + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

#[test]
fn rules_that_hide_each_other_are_learned() {
    let order = |page, copy: u64| match copy % 2 {
        0 => (format!("http://a/v?id={page}&lang=x&sid={}", token(page, copy)), page),
        _ => (format!("http://a/v?sid={}&lang=x&id={page}", token(page, copy)), page),
    };
    assert_eq!(learned(&urls(20, order)), ["ignore-parameter sid ", "ignore-parameter-order "]);
}

#[test]
fn parameters_that_matter_are_kept() {
    let own = |page, copy| (format!("http://a/v?id={page}&sid={}", token(page, copy)), page * 5 + copy);
    assert!(learned(&urls(20, own)).is_empty());
    // One value of twenty makes a difference.
    let rare = |page, copy| match (page * 5 + copy) % 20 {
        7 => (format!("http://a/v?id={page}&opt=7"), 1000 + page),
        other => (format!("http://a/v?id={page}&opt={other}{copy}"), page),
    };
    assert!(learned(&urls(40, rare)).is_empty());
}

#[test]
fn an_error_page_under_many_urls_is_no_evidence() {
    let errors = |page, copy| (format!("http://a/{page}/x{copy}?q={page}{copy}"), 1);
    assert!(learned(&urls(40, errors)).is_empty());
}

#[test]
fn a_notice_under_several_pages_is_one_content() {
    // Seven forms show one of two notices, and all other pages differ.
    let notice = |form: u64, copy| (format!("http://a/form{form}?step={copy}"), 1000 + form % 2);
    let pages = (0..50).map(|page| (format!("http://a/{page}.html"), page));
    let all: Vec<_> = urls(7, notice).into_iter().chain(pages.clone()).collect();
    assert!(learned(&all).is_empty());
    // Five notices are enough.
    let notices = |form: u64, copy| (format!("http://a/form{form}?step={copy}"), 1000 + form % 5);
    let all: Vec<_> = urls(7, notices).into_iter().chain(pages).collect();
    assert_eq!(learned(&all), ["ignore-parameter step "]);
}

/// The rules that are learned from captures at times in hours, with the numbers of contents for and against each; those that
/// were refused in brackets.
fn learned_at(mut captures: Vec<(String, u64, i64)>) -> Vec<String> {
    captures.sort();
    let mut host = HostCaptures::default();
    captures.iter().for_each(|(uri, content, hour)| host.push_at(uri.as_bytes(), *content, Some(hour * 3_600_000)));
    let rules = learn_host(&host, &DocumentEvidence::default(), &ContentLimits::default()).rules.into_iter();
    let text = |rule: JudgedRule| format!("{} {}:{}", rule.rule.rule, rule.support, rule.counter);
    rules.map(|rule| if rule.refusal.is_some() { format!("({})", text(rule)) } else { text(rule) }).collect()
}

/// Five sections of items; the item `id` of section `page` has a content at some times.
fn items(contents: impl Fn(u64, u64) -> Vec<(u64, i64)>) -> Vec<(String, u64, i64)> {
    let items = (0..5).flat_map(|section| (0..10).map(move |id| (section, id)));
    let captures = items.flat_map(|(section, id)| {
        let url = format!("http://a/s{section}?id={id}");
        contents(section, id).into_iter().map(move |(content, hour)| (url.clone(), content, hour))
    });
    captures
        .chain((0..50).flat_map(|page| [1, 2].map(|hour| (format!("http://a/{page}.html"), 1000 + page, hour))))
        .collect()
}

#[test]
fn a_placeholder_on_the_day_of_launch_is_no_evidence() {
    let item = |section: u64, id: u64| 100 + section * 10 + id;
    assert_eq!(learned_at(items(|section, _| vec![(section, 1)])), ["ignore-parameter id 5:0"]);
    let launched =
        items(|section, id| vec![(section, 1), (item(section, id), 200 + id as i64), (item(section, id), 400)]);
    assert_eq!(learned_at(launched), ["(ignore-parameter id 0:45)"]);
    // Some items have the placeholder still.
    let some = items(|section, id| vec![(section, 1), (if id < 4 { item(section, id) } else { section }, 400)]);
    assert_eq!(learned_at(some), ["(ignore-parameter id 5:20)"]);
    let closed = items(|section, id| vec![(item(section, id), 1), (section, 400)]);
    assert_eq!(learned_at(closed), ["(ignore-parameter id 0:45)"]);
}

#[test]
fn pages_that_change_between_captures_of_their_urls_are_evidence() {
    let versions = items(|section, id| vec![(section, 1), (100 + section * 10 + id, 100 + 10 * id as i64)]);
    assert_eq!(learned_at(versions), ["ignore-parameter id 5:0"]);
}

#[test]
fn variants_of_pages_are_no_counter_examples() {
    let variant =
        |page: u64, copy: u64| (format!("http://a/v?id={page}&sid={}", token(page, copy)), page * 2 + copy % 2);
    assert_eq!(learned(&urls(20, variant)), ["ignore-parameter sid=<hex> "]);
}

#[test]
fn a_parameter_may_matter_under_other_paths_only() {
    let paths = |page, copy| match page % 2 {
        0 => (format!("http://a/shop/{page}?v={copy}"), page),
        _ => (format!("http://a/news/{page}?v={copy}"), page * 5 + copy),
    };
    assert_eq!(learned(&urls(40, paths)), ["ignore-parameter v /shop/"]);
}

#[test]
fn canonical_links_confirm_rules_that_few_contents_support() {
    let page = |page, copy| (format!("http://a/v?id={page}&ref={copy}"), page);
    let few: Vec<_> = (0..3).flat_map(|id| (0..2).map(move |copy| page(id, copy))).collect();
    let canonical = |pages: std::ops::Range<u64>| {
        let mut documents = DocumentEvidence::default();
        for id in pages {
            documents.add_canonical(
                format!("http://a/v?id={id}&ref=1").as_bytes(),
                format!("http://a/v?id={id}").as_bytes(),
            );
            documents.add_canonical(format!("http://a/v?id={id}&ref=1").as_bytes(), b"http://a/");
        }
        documents
    };
    assert!(learned(&few).is_empty() && learned_with(&few, &canonical(0..4)).is_empty());
    assert_eq!(learned_with(&few, &canonical(0..5)), ["ignore-parameter ref "]);
    // Never alone, and not against contents.
    assert!(learned_with(&few[..2], &canonical(0..5)).is_empty());
    let different: Vec<_> = few.iter().cloned().chain((0..9).map(|id| (page(0, 9 + id).0, 100 + id))).collect();
    assert!(learned_with(&different, &canonical(0..5)).is_empty());
}

#[test]
fn two_names_of_one_page_do_not_merge_all_pages() {
    let name = |page, copy: u64| match copy % 2 {
        0 => (format!("http://a/w?id={page}"), page),
        _ => (format!("http://a/w?curid={page}"), page),
    };
    assert!(learned(&urls(40, name)).is_empty());
    let three = |page, copy: u64| match copy % 3 {
        0 => (format!("http://a/w?title=t{page}"), page),
        1 => (format!("http://a/w?curid={page}"), page),
        _ => (format!("http://a/w?oldid={}", page + 100), page),
    };
    assert!(learned(&urls(40, three)).is_empty());
}

#[test]
fn few_contents_under_many_urls_do_not_merge_them() {
    // The contents of a URL are those of a hundred others, but nothing in the URLs shows of which.
    let any = |page: u64, copy: u64| {
        let (a, b) = ((page * 7 + copy) % 40, (page * 3 + copy * 11) % 37);
        (format!("http://a/x?a={a}&b={b}"), (a * 5 + b * 3) % 30)
    };
    assert!(learned(&urls(300, any)).is_empty());
}

#[test]
fn noise_does_not_hide_sessions() {
    // One of ten captures has a content of its own.
    let noisy = |page: u64, copy: u64| {
        let number = page * 5 + copy;
        let content = if number % 10 == 3 { 1000 + number } else { page };
        (format!("http://a/v?id={page}&sid={}", token(page, copy)), content)
    };
    assert_eq!(learned(&urls(60, noisy)), ["ignore-parameter sid=<hex> "]);
    // More than a third: what was sent may depend on the identifier.
    let many = |page: u64, copy: u64| {
        let number = page * 5 + copy;
        let content = if number % 5 < 2 { 1000 + number } else { page };
        (format!("http://a/v?id={page}&img={}", token(page, copy)), content)
    };
    assert!(learned(&urls(60, many)).is_empty());
    // One of three contents for each identifier.
    let third = |page: u64, copy: u64| {
        let number = (page * 5 + copy) * 7 % 11 % 3;
        (format!("http://a/v?id={}&b={}", page / 3, token(page, copy)), page / 3 * 3 + number)
    };
    assert!(learned(&urls(120, third)).is_empty());
    // Captures of the same URL agree.
    let repeated: Vec<_> = urls(60, noisy).into_iter().flat_map(|capture| [capture.clone(), capture]).collect();
    assert!(learned(&repeated).is_empty());
    let in_path = |page, copy| {
        let content = noisy(page, copy).1;
        (format!("http://a/{page}.do;jsessionid={}", token(page, copy)), content)
    };
    assert_eq!(learned(&urls(60, in_path)), ["ignore-path-parameter jsessionid "]);
}

#[test]
fn values_that_select_one_of_three_contents_are_no_noise() {
    // As many pairs of contents agree as with two variants.
    let content = |page: u64, copy: u64| match page % 4 {
        0 => [0, 0, 0, 1, 2],
        1 => [1, 1, 1, 2, 0],
        2 => [2, 2, 2, 2, 1],
        _ => [0, 0, 0, 1, 1],
    }[copy as usize];
    let selecting =
        |page, copy| (format!("http://a/d/{page}?key={}", token(page, copy)), 3 * page + content(page, copy));
    assert!(learned(&urls(8, selecting)).is_empty());
    let two =
        |page, copy| (format!("http://a/d/{page}?key={}", token(page, copy)), 3 * page + content(page, copy).min(1));
    assert_eq!(learned(&urls(8, two)), ["ignore-parameter key=<hex> "]);
}

#[test]
fn noise_of_groups_does_not_explain_more_counter_examples_than_contents() {
    // Six pages have two variants, both of which confirm the rule. Some others have two URLs, whose contents differ.
    let rules = |others: u64| {
        let url = |page: u64, copy: u64, content: u64| {
            (format!("http://a/d/{page}?key={}", token(page, copy)), 5 * page + content)
        };
        let variants = (0..6).flat_map(|page| (0..5).map(move |copy| url(page, copy, copy / 3)));
        let pairs = (6..6 + others).flat_map(|page| (0..2).map(move |copy| url(page, copy, copy)));
        learned(&variants.chain(pairs).collect::<Vec<_>>())
    };
    assert_eq!(rules(6), ["ignore-parameter key=<hex> "]);
    assert!(rules(7).is_empty());
}

#[test]
fn path_parameters_that_are_no_sessions_need_more_contents() {
    let style = |page, copy| (format!("http://a/{page};style={}", ["red", "blue", "green"][copy as usize % 3]), page);
    assert!(learned(&urls(8, style)).is_empty());
    assert_eq!(learned(&urls(12, style)), ["ignore-path-parameter style "]);
    let session = |page, copy| (format!("http://a/{page};jsessionid={}", token(page, copy)), page);
    assert_eq!(learned(&urls(6, session)), ["ignore-path-parameter jsessionid "]);
}

#[test]
fn sessions_that_matter_under_some_paths_are_kept_there() {
    let carts = |page: u64, copy: u64| match page % 4 {
        0 => (format!("http://a/cart?sid={}", token(page, copy)), 1000 + page * 5 + copy),
        _ => (format!("http://a/shop/{page}?sid={}", token(page, copy)), page * 2 + copy % 2),
    };
    assert_eq!(learned(&urls(80, carts)), ["ignore-parameter sid=<hex> /shop/"]);
}

#[test]
fn rules_about_paths_may_hold_for_some_paths() {
    let matters = |page: u64, copy: u64| if page.is_multiple_of(3) { page * 5 + copy % 2 + 1000 } else { page };
    let place = |page: u64| ["src", "doc", "lib"][page as usize % 3];
    let slash = |page: u64, copy: u64| {
        (format!("http://a/{}/p{page}{}", place(page), ["", "/"][copy as usize % 2]), matters(page, copy))
    };
    assert_eq!(learned(&urls(60, slash)), ["ignore-final-slash /doc/", "ignore-final-slash /lib/"]);
    let case = |page: u64, copy: u64| {
        let name = ["p", "P"][copy as usize % 2];
        (format!("http://a/{}/{name}{page}", place(page)), matters(page, copy))
    };
    assert_eq!(learned(&urls(60, case)), ["ignore-path-case /doc/", "ignore-path-case /lib/"]);
    let scheme = |page: u64, copy: u64| {
        let scheme = ["http", "https"][copy as usize % 2];
        (format!("{scheme}://a/{}/{page}", place(page)), matters(page, copy))
    };
    assert_eq!(learned(&urls(60, scheme)), ["ignore-scheme /doc/", "ignore-scheme /lib/"]);
    let scripts = |page: u64, copy: u64| match page % 2 {
        0 => (format!("http://a/en/view.php?id={page}&src={copy}"), page),
        _ => (format!("http://a/en/list.php?id={page}&src={copy}"), page * 5 + copy),
    };
    assert_eq!(learned(&urls(60, scripts)), ["ignore-parameter src /en/view.php/"]);
}

#[test]
fn few_contents_of_a_part_of_a_site_may_be_chance() {
    // Every tenth page has a difference; under /b/ none of six was captured.
    let parts = |page: u64, copy: u64| match page {
        0..6 => (format!("http://a/b/{page}?v={copy}"), page),
        _ => {
            (format!("http://a/c/{page}?v={copy}"), if page.is_multiple_of(10) { 1000 + page * 5 + copy } else { page })
        }
    };
    assert!(learned(&urls(60, parts)).is_empty());
}

#[test]
fn segments_may_be_deep_and_parameters_may_have_semicolons() {
    let deep = |page, copy| (format!("http://a/x/y/z/add/product/{page}/key/{}", token(page, copy)), page);
    assert_eq!(learned(&urls(20, deep)), ["ignore-segment-value /x/y/z/add/product/#/key/<hex> "]);
    let semicolons = |page, copy: u64| match copy % 2 {
        0 => (format!("http://a/v?a=x;id={page};sid={}", token(page, copy)), page),
        _ => (format!("http://a/v?id={page};sid={};a=x", token(page, copy)), page),
    };
    assert_eq!(learned(&urls(20, semicolons)), ["ignore-parameter sid ", "ignore-parameter-order "]);
}

#[test]
fn segments_may_be_parameters() {
    let reference = |page: u64, copy: u64| {
        let segment = if copy.is_multiple_of(3) { String::new() } else { format!("/ref=x_{}", page * 7 + copy) };
        (format!("http://a/{}/dp/{page}{segment}", ["one", "two", "three"][page as usize % 3]), page)
    };
    assert_eq!(learned(&urls(40, reference)), ["ignore-segment-parameter ref "]);
    let numbers = |page: u64, copy: u64| (format!("http://a/view/id={page}/sid={}", page * 7 + copy), page);
    assert_eq!(learned(&urls(40, numbers)), ["ignore-segment-parameter sid "]);
}

#[test]
fn two_segments_of_a_path_may_make_no_difference() {
    let names = ["music", "river", "stone", "paper", "light", "winter", "market"];
    let name = |number: u64| names[number as usize % names.len()];
    let crumbs = |page: u64, copy: u64| (format!("http://a/c/{}/{}/{page}", name(page + copy), name(3 * copy)), page);
    assert_eq!(learned(&urls(40, crumbs)), ["ignore-segment-value /c/* ", "ignore-segment-value /c/*/* "]);
    // The second of them is the name of a page.
    let topics = |page: u64, copy: u64| (format!("http://a/c/{}/{}/{page}", name(copy), name(page)), page);
    assert_eq!(learned(&urls(40, topics)), ["ignore-segment-value /c/* "]);
}

#[test]
fn of_several_values_of_one_name_the_order_matters() {
    let values = |page: u64, copy: u64| {
        let (first, last) = (copy % 2, copy / 2 % 2);
        match copy % 2 {
            0 => (format!("http://a/v?id={page}&x=1&sel={first}&sel={last}"), page * 2 + last),
            _ => (format!("http://a/v?sel={first}&x=1&sel={last}&id={page}"), page * 2 + last),
        }
    };
    let captures: Vec<_> = (0..30).flat_map(|page| (0..4).map(move |copy| values(page, copy))).collect();
    let both = captures.iter().flat_map(|(uri, content)| {
        let (base, query) = uri.split_once('?').unwrap();
        let mut fields: Vec<&str> = query.split('&').collect();
        fields.sort_by_key(|field| field.split('=').next());
        [(uri.clone(), *content), (format!("{base}?{}", fields.join("&")), *content)]
    });
    assert_eq!(learned(&both.collect::<Vec<_>>()), ["ignore-parameter-order "]);
}

/// Captures of other pages, of which `contents` are those of each URL.
fn repeated(contents: &'static [u64]) -> impl Iterator<Item = (String, u64)> {
    let page =
        |page: u64| contents.iter().map(move |content| (format!("http://a/n{page:02}"), 5000 + page * 9 + content));
    (0..60).flat_map(page)
}

#[test]
fn on_hosts_that_change_contents_of_many_groups_are_no_evidence() {
    // Three pages show each of eight contents, one of them under two URLs.
    let page = |page: u64, copy: u64| (format!("http://a/{page:02}?v={copy}"), page % 8);
    let scattered = || (0..24).map(|number| page(number, 0)).chain((0..8).map(|number| page(number, 1)));
    // One page shows each of them.
    let own = || (0..8).flat_map(|number| [page(number, 0), page(number, 1)]);
    let (changing, stable) = (&[0, 1, 2], &[0, 0, 0]);
    assert!(learned(&scattered().chain(repeated(changing)).collect::<Vec<_>>()).is_empty());
    assert_eq!(learned(&scattered().chain(repeated(stable)).collect::<Vec<_>>()), ["ignore-parameter v "]);
    assert_eq!(learned(&own().chain(repeated(changing)).collect::<Vec<_>>()), ["ignore-parameter v "]);
}

#[test]
fn rules_on_hosts_that_always_change_must_be_confirmed_as_often_as_contradicted() {
    // Two of three captures of a URL differ, and so do the contents of a page's URLs in `wrong` of ten pages.
    let rules = |wrong: u64| {
        let url = |page: u64, copy: u64| {
            (format!("http://a/{page:02}?v={copy}"), if page % 10 < wrong { page * 5 + copy + 1000 } else { page })
        };
        let pages = (0..40).flat_map(|page| (0..2).map(move |copy| url(page, copy)));
        learned(&pages.chain(repeated(&[0, 1, 2])).collect::<Vec<_>>())
    };
    assert_eq!(rules(4), ["ignore-parameter v "]);
    assert!(rules(6).is_empty());
}
