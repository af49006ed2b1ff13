"""Sites whose truth is known: captures, and which URLs are one resource.

A site is a host with a behavior (its kind). A kind yields captures: URL, content, and the resource that the URL names.
Two URLs are one resource if they always have the same content, except for noise that the kind adds. Everything depends
on the seed only. `DUPLICATES` have several URLs per resource that rules can describe; `HOSTILE` sites look as if they had, or
have nothing that may be merged.
"""

import base64
import collections
import hashlib

Capture = collections.namedtuple("Capture", "url status digest time mime length resource kind")


def digest(text):
    return base64.b32encode(hashlib.sha1(text.encode()).digest()).decode()


def token(dice, length, letters="0123456789abcdef"):
    return "".join(dice.choice(letters) for _ in range(length))


def uuid(dice):
    return "-".join(token(dice, n) for n in (8, 4, 4, 4, 12))


WORDS = "news team archive sport city garden music river stone paper light winter market bridge history science travel".split()


def words(dice, count):
    return "-".join(dice.choice(WORDS) for _ in range(count))


class Site:
    """Yields (url, page, content): `content` is the page's own unless it is given."""

    def __init__(self, host, dice):
        self.host, self.dice = host, dice
        self.sections = dice.sample(WORDS, 4)
        self.name = dice.choice(["sid", "sessid", "s", "tok", "visitor", "zx"])
        self.scheme = dice.choice(["http", "https"])

    def pick(self, count):
        """A page number; some pages are captured much more often than others."""
        return int(self.dice.random() ** 1.5 * count)

    def url(self, rest, host=None):
        return f"{self.scheme}://{host or self.host}{rest}"

    def path(self, page, ending=".html"):
        return f"/{self.sections[page % 4]}/{WORDS[page % 17]}-{page}{ending}"


def plain(site, page):
    return site.url(site.path(page)), page


def session_parameter(site, page):
    return site.url(f"/view.php?id={page}&{site.name}={token(site.dice, 32)}"), page


def session_first(site, page):
    return site.url(f"/{site.sections[0]}?{site.name}={uuid(site.dice)}&item={page}&lang={page % 2}"), page


def tracking(site, page):
    extra = [
        f"{name}={site.dice.choice(WORDS)}" for name in ("utm_source", "utm_medium", "utm_campaign") if site.dice.random() < 0.5
    ]
    extra += [f"gclid={token(site.dice, 20)}"] if site.dice.random() < 0.2 else []
    return site.url(site.path(page) + ("?" + "&".join(extra) if extra else "")), page


def order(site, page):
    fields = [f"a={page % 7}", f"b={page // 7}", f"sort={page % 2}"]
    site.dice.shuffle(fields)
    return site.url("/list?" + "&".join(fields)), page


def order_and_session(site, page):
    fields = [f"a={page % 7}", f"b={page // 7}", f"{site.name}={token(site.dice, 26, 'abcdefghijkmnpqrstuvwxyz0123456789')}"]
    site.dice.shuffle(fields)
    return site.url("/app/list.jsp?" + "&".join(fields)), page


def index(site, page):
    return site.url(f"/{site.sections[page % 4]}/{page}/" + site.dice.choice(["", "index.html", "index.html"])), page


def slash(site, page):
    return site.url(site.path(page, "") + site.dice.choice(["", "/"])), page


def letter_case(site, page):
    path = f"/{site.sections[page % 4]}/Page-{page}.aspx"
    return site.url(site.dice.choice([path, path.lower(), path.title(), path.upper()])), page


def path_session(site, page):
    return site.url(f"/{site.sections[page % 4]}/p{page}.do;jsessionid={token(site.dice, 32, '0123456789ABCDEF')}"), page


def segment_session(site, page):
    return site.url(f"/shop/{token(site.dice, 24)}/{site.sections[page % 4]}/{page}"), page


def print_view(site, page):
    path = f"/{site.sections[page % 4]}/{page}"
    return site.url(site.dice.choice([path, path, "/print" + path, path + "?print=1"])), page


def default_language(site, page):
    path = f"/{site.sections[page % 4]}/{page}"
    return site.url(site.dice.choice([path, "/en" + path])), page


def breadcrumbs(site, page):
    """The way to an item, which two segments name."""
    return site.url(f"/c/{site.dice.choice(WORDS)}/{site.dice.choice(WORDS)}/{page}"), page


def reference_segment(site, page):
    """Where a visitor came from, as a segment behind those of the page."""
    reference = f"/ref={token(site.dice, 2, WORDS[0])}_{site.dice.randrange(90)}" if site.dice.random() < 0.7 else ""
    return site.url(f"/{site.sections[page % 4]}/{page}{reference}"), page


def slug(site, page):
    return site.url(f"/article/{1000 + page}/{words(site.dice, 3)}"), page


def double_slash(site, page):
    return site.url(site.path(page).replace("/", site.dice.choice(["/", "//"]))), page


def cache_buster(site, page):
    return site.url(f"/static/{WORDS[page % 17]}{page}.css?{1600000000 + site.dice.randrange(10 ** 8)}"), page


def schemes(site, page):
    return f"{site.dice.choice(['http', 'https'])}://{site.host}{site.path(page)}", page


def aliases(site, page):
    return site.url(site.path(page), site.dice.choice([site.host, "www." + site.host, "m." + site.host])), page


def noisy_session(site, page):
    """Half of the pages have two variants (A/B tests)."""
    variant = site.dice.randrange(2) if page % 2 else 0
    return site.url(f"/view?id={page}&{site.name}={token(site.dice, 32)}"), page, f"page {page} variant {variant}"


def error_noise_session(site, page):
    """One of twenty captures shows an error of its own, such as a number for the support."""
    noise = f" error {token(site.dice, 8)}" if site.dice.random() < 0.05 else ""
    return site.url(f"/view?id={page}&{site.name}={token(site.dice, 32)}"), page, f"page {page}{noise}"


def cart_session(site, page):
    """A session identifier, which selects the content of carts only; other pages have two variants."""
    session = token(site.dice, 32)
    if site.dice.random() < 0.15:
        return site.url(f"/cart?{site.name}={session}"), ("cart", session)
    return site.url(f"/shop/{page}?{site.name}={session}"), page, f"page {page} variant {site.dice.randrange(2)}"


def deep_session(site, page):
    return site.url(f"/shop/cart/add/product/{page}/form_key/{token(site.dice, 20)}"), page


def semicolons(site, page):
    fields = ["a=view", f"id={page}", f"{site.name}={token(site.dice, 32)}"]
    site.dice.shuffle(fields)
    return site.url("/cgi/view.cgi?" + ";".join(fields)), page


def script_parameter(site, page):
    """A parameter that matters for one of two scripts in a directory."""
    source = site.dice.choice(WORDS)
    if site.dice.random() < 0.3:
        return site.url(f"/en/list.php?id={page}&src={source}"), ("list", page, source)
    return site.url(f"/en/view.php?id={page}&src={source}"), page


def slash_of_some(site, page):
    """A final slash makes a difference in one of four parts."""
    ending = site.dice.choice(["", "/"])
    return site.url(site.path(page, ending)), (page, ending) if page % 4 == 0 else page


def last_value(site, page):
    """The order of names makes no difference; of two values of one name, the last one is used."""
    first, last = site.dice.randrange(2), site.dice.randrange(2)
    others = [f"id={page}", f"z={page % 3}"]
    site.dice.shuffle(others)
    return (
        site.url("/q?" + "&".join([*others[:1], f"sel={first}", *others[1:], f"sel={last}"])),
        (page, first, last),
        f"{page} {last}",
    )


def rare_value(site, page):
    """A parameter that matters for 1 % of its values."""
    value = site.dice.randrange(1000)
    page = (page, value) if value % 100 == 7 else page
    return site.url(f"/show?id={page[0] if isinstance(page, tuple) else page}&opt={value}"), page


def soft_404(site, page):
    """Every URL that does not exist answers 200 with the same page."""
    if site.dice.random() < 0.5:
        url = site.url(f"/{words(site.dice, 2)}/{token(site.dice, 6)}?q={site.dice.randrange(1000)}")
        return url, url, "not found"
    return site.url(site.path(page)), page


def missing_items(site, page):
    """Identifiers that do not exist answer 200 with one page; those that exist have pages of their own."""
    if site.dice.random() < 0.3:
        number = 100000 + site.dice.randrange(100000)
        return site.url(f"/item?id={number}"), number, "no such item"
    return site.url(f"/item?id={page}"), page


def login_wall(site, page):
    if page % 3 == 0:
        url = site.url(f"/account/{page}?next={words(site.dice, 2)}")
        return url, url, "please log in"
    return site.url(site.path(page)), page


def noise(site, page):
    """No duplicates, and a third of the pages is different at every capture."""
    return site.url(f"/n?id={page}"), page, f"page {page} {site.dice.random() if page % 3 == 0 else ''}"


def calendar(site, page):
    year, month = 1990 + site.dice.randrange(200), 1 + site.dice.randrange(12)
    if site.dice.random() < 0.5:
        return site.url(f"/calendar?year={year}&month={month}&view=list"), (year, month), "no events"
    return site.url(f"/calendar?year={year}&month={month}&view=grid"), (year, month, "grid")


def infinite(site, page):
    depth = [site.dice.choice(site.sections) for _ in range(1 + site.dice.randrange(7))]
    return site.url("/" + "/".join(depth) + "/"), tuple(depth)


def diverging(site, page):
    """Two hosts that share most pages; every eighth page differs."""
    mirror = site.dice.random() < 0.5
    host = ("www." if mirror else "") + site.host
    return site.url(site.path(page), host), (page, mirror) if page % 8 == 0 else page


def session_like(site, page):
    """Identifiers that look like sessions."""
    number = hashlib.md5(f"{site.host} {page}".encode()).hexdigest()
    return site.url(f"/doc?sid={number}" if page % 2 else f"/d/{number}/view"), page


def changing(site, page):
    """The content of every page changes from time to time."""
    return site.url(site.path(page) + f"?v={page % 5}"), page, f"page {page} edition {site.dice.randrange(4)}"


def pages(site, page):
    """A missing number of the page is page 1; other pages differ."""
    number = site.dice.randrange(4)
    url = f"/topic/{page}" + (f"?page={number}" if number else "")
    return site.url(url), (page, max(number, 1))


def meaningful_case(site, page):
    return site.url(f"/x/{token(site.dice, 3, 'aAbB')}-{page % 20}"), None


def meaningful_order(site, page):
    fields = [f"f={site.dice.choice(WORDS[:5])}", f"g={site.dice.choice(WORDS[:5])}"]
    site.dice.shuffle(fields)
    return site.url("/pipe?" + "&".join(fields)), None


def sorted_lists(site, page):
    """The order of a list matters; for single items the same parameter has no effect."""
    sort = site.dice.choice(["price", "name", "date", "rank"])
    if page % 5 == 0:
        return site.url(f"/view?type=list&id={page}&sort={sort}"), (page, sort)
    return site.url(f"/view?type=item&id={page}&sort={sort}"), page


def untranslated(site, page):
    """Languages show the same page, except for the 3 % of the pages that are translated."""
    language = site.dice.choice(["en", "de", "fr", "nl"])
    return site.url(f"/{language}/{site.sections[page % 4]}/{page}"), (page, language) if page % 33 == 0 else page


def tracker_selects(site, page):
    """A parameter that other sites track with selects the content."""
    source = site.dice.choice(WORDS[:6])
    return site.url(f"/offer/{page}?utm_source={source}"), (page, source)


def two_names(site, page):
    """A page has a number under each of three names. No rule can say that they are one page, and each name selects pages."""
    name, first = site.dice.choice([("id", 0), ("curid", 1000), ("oldid", 5000)])
    return site.url(f"/w/index.php?{name}={first + page}"), page


def few_contents(site, page):
    """Combinations of two parameters have one of few contents, such as lists that are often equal."""
    a, b = site.dice.randrange(40), site.dice.randrange(40)
    content = int(hashlib.md5(f"{site.host} {a} {b}".encode()).hexdigest(), 16) % 30
    return site.url(f"/x?a={a}&b={b}"), (a, b), f"list {content}"


def placeholders(site, page):
    """Images by their hash; those that do not exist, 60 %, are the placeholder of the album."""
    album, number = page % 20, token(site.dice, 32)
    exists = site.dice.random() < 0.4
    return site.url(f"/album/{album}?img={number}"), (album, number) if exists else (album, "none")


def one_of_three(site, page):
    """Each hexadecimal value selects one of three contents of a page."""
    number = token(site.dice, 32)
    return site.url(f"/doc/{page}?key={number}"), (page, int(number, 16) % 3)


def styles(site, page):
    """A path parameter that is part of the name of one of thirty pages."""
    style = site.dice.choice(site.sections)
    return site.url(f"/{site.sections[page % 4]}/{page};style={style}"), (page, style) if page % 30 == 7 else page


def partner(site, page):
    return site.url(f"/deal/{page}" + site.dice.choice(["", f"?pid={site.dice.randrange(500)}"])), page


def anchors(site, page):
    return site.url(site.path(page) + site.dice.choice(["", "#top", "#comments", f"#c{site.dice.randrange(900)}"])), page


def two_sessions(site, page):
    return site.url(f"/r.php?u={token(site.dice, 32)}&id={page}&v={uuid(site.dice)}"), page


def four_spellings(site, page):
    scheme, ending = site.dice.choice(["http", "https"]), site.dice.choice(["", "/", "/index.php"])
    return f"{scheme}://{site.host}/{site.sections[page % 4]}/{page}{ending}", page


def front_controller(site, page):
    return site.url(site.dice.choice(["", "/index.php"]) + site.path(page, "")), page


def empty_parameters(site, page):
    return site.url(f"/s?id={page}" + site.dice.choice(["", "&", "&&"])), page


def drawn(site, *parts):
    """A number that depends on the site and on the parts only."""
    return int(hashlib.md5(" ".join(map(str, (site.host, *parts))).encode()).hexdigest(), 16)


def copies(site, page):
    """Every third item is a copy of the next one, under an identifier of its own."""
    return site.url(f"/item.php?id={page}&cat={page % 5}"), ("item", page), f"item {page + (page % 3 == 0)}"


def colors(site, page):
    """A parameter that matters for one of ten products."""
    color = site.dice.choice(["red", "blue", "green"])
    return site.url(f"/product/{page}?color={color}"), (page, color) if page % 10 == 3 else page


def last_pages(site, page):
    """Pages after the last one of a list are empty, and name the list."""
    number, last = 1 + site.dice.randrange(9), 1 + drawn(site, page) % 5
    return site.url(f"/search?q=w{page}&page={number}"), (page, number), f"{page} {min(number, last + 1)}"


def thumbnails(site, page):
    """Images are never enlarged: sizes beyond that of the original are equal."""
    widths = [100, 200, 400, 800]
    width = site.dice.choice(widths)
    return site.url(f"/img/{page}.jpg?w={width}"), (page, min(width, widths[drawn(site, page) % 4]))


def revisions(site, page):
    """Half of the revisions of a page change nothing."""
    number = site.dice.randrange(8)
    shown = max((other for other in range(number + 1) if drawn(site, page, other) % 2), default=0)
    return site.url(f"/doc/{page}?rev={number}"), (page, shown)


def tabs(site, page):
    """Tabs of users; most of them are empty."""
    tab = site.dice.choice(["posts", "likes", "media"])
    return site.url(f"/u/{page}/{tab}"), (page, tab), f"{page} {tab if drawn(site, page, tab) % 3 == 0 else 'nothing'}"


def parked(site, page):
    """Every URL shows one page."""
    rest = site.dice.choice(
        [f"/{words(site.dice, 1)}/{page}", f"/?q={words(site.dice, 2)}", f"/{page}.html", f"/p?id={page}&s={token(site.dice, 8)}"]
    )
    return site.url(rest), site.url(rest), "parked"


def closed_forms(site, page):
    """Seven forms show one of two notices, whatever their parameters are."""
    if page % 2 == 0:
        return site.url(site.path(page)), page
    url = site.url(f"/form{page // 2 % 7}?step={site.dice.randrange(1000)}")
    return url, url, f"closed {page // 2 % 7 % 2}"


def missing_directories(site, page):
    """Seven directories that do not exist show one of two notices, with a final slash and without it."""
    if page % 2 == 0:
        return site.url(site.path(page)), page
    url = site.url(f"/{WORDS[page // 2 % 7]}/item" + site.dice.choice(["", "/"]))
    return url, url, f"missing {page // 2 % 7 % 2}"


DUPLICATES = [
    session_parameter, session_first, tracking, order, order_and_session, index, slash, letter_case, path_session,
    segment_session, print_view, default_language, breadcrumbs, reference_segment, slug, double_slash, cache_buster, schemes,
    aliases, noisy_session, error_noise_session, cart_session, deep_session, semicolons, script_parameter, slash_of_some,
    last_value, partner, anchors, two_sessions, four_spellings, front_controller, empty_parameters,
]
HOSTILE = [
    plain, rare_value, soft_404, missing_items, login_wall, noise, calendar, infinite, diverging, session_like, changing, pages,
    meaningful_case, meaningful_order, sorted_lists, untranslated, tracker_selects, two_names, few_contents, placeholders,
    one_of_three, styles, copies, colors, last_pages, thumbnails, revisions, tabs, parked, closed_forms, missing_directories,
]


def site_captures(kind, number, count, dice):
    """Captures of one site."""
    site = Site(f"{kind.__name__.replace('_', '-')}{number}.site{number}.example", dice)
    page_count = max(count // 6, 8)
    for _ in range(count):
        url, page, *content = kind(site, site.pick(page_count))
        resource = f"{site.host} {url if page is None else page}"
        text = f"{site.host} {content[0]}" if content else resource
        time = 20260100000000 + dice.randrange(1, 29) * 1000000 + dice.randrange(24) * 10000 + dice.randrange(60) * 100
        status = 404 if dice.random() < 0.01 else 200
        yield Capture(
            url, status, digest("gone" if status == 404 else text), time, "text/html", 500 + len(url) * 7, resource, kind.__name__
        )


def crawl(count, per_site, dice, kinds=None):
    """About `count` captures of sites of all kinds, shuffled."""
    kinds = kinds or DUPLICATES + HOSTILE
    found = []
    for number in range(max(count // per_site, len(kinds))):
        kind = kinds[number % len(kinds)]
        found.extend(site_captures(kind, number, int(per_site * (0.5 + dice.random())), dice))
    dice.shuffle(found)
    return found


def write_cdxj(path, captures):
    import json

    with open(path, "w", encoding="utf-8") as file:
        for capture in captures:
            fields = {
                "url": capture.url, "mime": capture.mime, "status": str(capture.status), "digest": capture.digest,
                "length": str(capture.length),
            }
            file.write(f"k)/ {capture.time} {json.dumps(fields)}\n")


def write_truth(path, captures):
    """One line per different URL: URL, resource, kind, separated by tabs."""
    with open(path, "w", encoding="utf-8") as file:
        for url, capture in sorted({capture.url: capture for capture in captures}.items()):
            file.write(f"{url}\t{capture.resource}\t{capture.kind}\n")
