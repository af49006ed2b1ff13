"""Sites whose truth is known, as archives with documents: what `irikey learn` finds with --near-duplicates and --canonical-links.

A kind yields documents: URL, page, text and canonical link. Texts have noise (dates, advertisements, counters) that gives every
capture a digest of its own. Canonical links are right, wrong or missing. `DUPLICATES` have several URLs per resource; `HOSTILE`
sites have texts or canonical links that mislead. Everything depends on the seed only.
"""

import collections
import hashlib

import learn_sites
from learn_sites import WORDS, token

Document = collections.namedtuple("Document", "url body link resource kind time")

# Words of texts: many, so that texts of different pages differ.
VOCABULARY = [a + b for a in WORDS for b in ("", "s", "er", "ing", "land", "like", "ward", "less")]


def text(seed, count):
    """The words of a page, which depend on the seed only."""
    words, state = [], hashlib.sha256(seed.encode()).digest()
    while len(words) < count:
        words += [VOCABULARY[(a << 8 | b) % len(VOCABULARY)] for a, b in zip(state[::2], state[1::2])]
        state = hashlib.sha256(state).digest()
    return words[:count]


def noise(dice):
    """What software adds to every answer: the time, an advertisement, a counter."""
    when = (
        f"{dice.randrange(1, 29)} {dice.choice(['January', 'March', 'July'])} 2026 {dice.randrange(24)}:{dice.randrange(60):02}"
    )
    return ["today", *when.split(), "visitor", str(dice.randrange(10 ** 6)), "buy", dice.choice(VOCABULARY)]


def page_text(site, page, count=220):
    return text(f"{site.host} {page}", count)


# Several URLs per page


def dated_session(site, page):
    """A session in every URL, and the time in every text."""
    return site.url(f"/view?id={page}&{site.name}={token(site.dice, 32)}"), page, page_text(site, page) + noise(site.dice), None


def dated_index(site, page):
    url = site.url(f"/{site.sections[page % 4]}/{page}/" + site.dice.choice(["", "index.html"]))
    return url, page, page_text(site, page) + noise(site.dice), None


def dated_order(site, page):
    fields = [f"a={page % 7}", f"b={page // 7}"]
    site.dice.shuffle(fields)
    return site.url("/list?" + "&".join(fields)), page, noise(site.dice) + page_text(site, page), None


def canonical_few(site, page):
    """Too few pages for a rule, but they name the URL without the parameter as canonical."""
    page %= 4
    url = site.url(site.path(page))
    return url + site.dice.choice(["", f"?from={site.dice.choice(WORDS)}"]), page, page_text(site, page), url


def canonical_session(site, page):
    url = site.url(f"/item/{page}")
    return f"{url}?{site.name}={token(site.dice, 26)}", page, page_text(site, page) + noise(site.dice), url


# Texts and links that mislead


def dated_plain(site, page):
    return site.url(site.path(page)), page, page_text(site, page) + noise(site.dice), None


def canonical_home(site, page):
    """Every page names the home page as canonical."""
    return site.url(f"/read?id={page}"), page, page_text(site, page), site.url("/")


def canonical_first(site, page):
    """Every part of an article names the first one as canonical."""
    number, page = 1 + site.dice.randrange(4), page % 20
    first = site.url(f"/story/{page}")
    return first + (f"?page={number}" if number > 1 else ""), (page, number), page_text(site, (page, number)), first


def canonical_dated(site, page):
    """As before, and the time is in every text."""
    url, page, words, link = canonical_first(site, page)
    return url, page, words + noise(site.dice), link


def canonical_other(site, page):
    """Pages name the page before as canonical."""
    return site.url(f"/p?n={page}"), page, page_text(site, page), site.url(f"/p?n={max(page - 1, 0)}")


def templates(site, page):
    """Texts that have hardly anything of their own, and do not change."""
    words = page_text(site, "template", 400)
    return site.url(f"/product?id={page}"), page, words[:200] + page_text(site, page, 2) + words[200:], None


def dated_templates(site, page):
    """Texts of which an eighth is their own, and the time."""
    words = page_text(site, "template", 300)
    return site.url(f"/offer?id={page}"), page, words + page_text(site, page, 40) + noise(site.dice), None


DUPLICATES = [dated_session, dated_index, dated_order, canonical_few, canonical_session]
HOSTILE = [dated_plain, canonical_home, canonical_first, canonical_dated, canonical_other, templates, dated_templates]


def site_documents(kind, number, count, dice):
    """Documents of one site."""
    site = learn_sites.Site(f"{kind.__name__.replace('_', '-')}{number}.site{number}.example", dice)
    for _ in range(count):
        url, page, words, link = kind(site, site.pick(max(count // 6, 8)))
        time = f"2026-01-{dice.randrange(1, 29):02}T{dice.randrange(24):02}:{dice.randrange(60):02}:00Z"
        head = f'<link rel="canonical" href="{link}">' if link and number % 2 else ""
        body = f"<html><head><title>{words[0]}</title>{head}</head><body><p>{' '.join(words)}</p></body></html>"
        yield Document(url, body, None if head else link, f"{site.host} {page}", kind.__name__, time)


def crawl(count, per_site, dice):
    """About `count` documents of sites of all kinds, shuffled."""
    kinds = DUPLICATES + HOSTILE
    found = []
    for number in range(max(count // per_site, 2 * len(kinds))):
        found.extend(site_documents(kinds[number // 2 % len(kinds)], number, int(per_site * (0.5 + dice.random())), dice))
    dice.shuffle(found)
    return found


def write_warc(path, documents):
    """Responses without digests: irikey computes these from the payloads."""
    with open(path, "wb") as file:
        for document in documents:
            link = f'Link: <{document.link}>; rel="canonical"\r\n' if document.link else ""
            body = document.body.encode()
            http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n{link}\r\n".encode() + body
            head = (f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: {document.time}\r\nWARC-Target-URI: {document.url}\r\n"
                    f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n")
            file.write(head.encode() + http + b"\r\n\r\n")


def write_urls(path, documents):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(document.url + "\n" for document in documents)
