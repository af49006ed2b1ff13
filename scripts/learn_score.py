"""Scores merges of URLs against the truth of `learn_sites`, and makes the keys of baselines."""

import collections
import re

# Parameters that lists of trackers name; a selection by hand of what w3lib, courlan, ClearURLs and others remove.
TRACKERS = re.compile(
    r"^(utm_\w+|gclid|fbclid|dclid|msclkid|yclid|mc_[ce]id|igshid|_ga|_gl|ref|ref_src|sid|sessid|sessionid|session_id|phpsessid|"
    r"jsessionid|aspsessionid\w*|cfid|cftoken|affiliate|aff_id|source|campaign|trk|zanpid|oly_enc_id|vero_id|wickedid|print)$",
    re.I,
)


def static_list(url):
    """Removes known parameters, path parameters and default documents, and sorts the others."""
    url = re.sub(r"(?i);jsessionid=[^/?#]*", "", url.split("#")[0])
    base, _, query = url.partition("?")
    base = re.sub(r"/(index|default)\.(html?|php|aspx?|jsp)$", "/", base)
    kept = sorted(field for field in query.split("&") if field and not TRACKERS.match(field.split("=")[0]))
    return base + ("?" + "&".join(kept) if kept else "")


class DustBuster:
    """Substring substitutions (Bar-Yossef, Keidar, Schonfeld 2007), read literally: substitutions between URLs of a host
    with equal content that occur often, checked against the same captures."""

    LONGEST, SUPPORT, REFUTED = 15, 10, 0.05

    def __init__(self, captures):
        self.rules = collections.defaultdict(list)
        contents = collections.defaultdict(lambda: collections.defaultdict(set))
        known = collections.defaultdict(dict)
        for capture in captures:
            if capture.status == 200:
                contents[host_of(capture.url)][capture.digest].add(capture.url)
                known[host_of(capture.url)][capture.url] = capture.digest
        for host, by_content in contents.items():
            support = collections.Counter()
            for urls in by_content.values():
                urls = sorted(urls)[:20]
                support.update({pair for i, a in enumerate(urls) for b in urls[:i] if (pair := self.substitution(a, b))})
            for (old, new), count in support.most_common(40):
                if count >= self.SUPPORT and self.is_confirmed(old, new, known[host]):
                    self.rules[host].append((old, new))

    def substitution(self, a, b):
        start = 0
        while start < min(len(a), len(b)) and a[start] == b[start]:
            start += 1
        end = 0
        while end < min(len(a), len(b)) - start and a[len(a) - 1 - end] == b[len(b) - 1 - end]:
            end += 1
        parts = a[start - 1:len(a) - end + 1], b[start - 1:len(b) - end + 1]
        return (
            (max(parts, key=lambda part: (len(part), part)), min(parts, key=lambda part: (len(part), part)))
            if max(map(len, parts)) <= self.LONGEST
            else None
        )

    def is_confirmed(self, old, new, known):
        right = wrong = 0
        for url, content in known.items():
            if old in url and (other := known.get(url.replace(old, new, 1))):
                right, wrong = right + (other == content), wrong + (other != content)
        return right > 0 and wrong <= self.REFUTED * (right + wrong)

    def key(self, url):
        for _ in range(5):
            before = url
            for old, new in self.rules[host_of(url)]:
                url = url.replace(old, new, 1)
            if url == before:
                break
        return url


def host_of(url):
    return url.split("/")[2]


def score(truth, keys):
    """Counts pairs of URLs. `truth`: (url, resource, kind) of different URLs; `keys`: key by URL. Returns counts by kind."""
    counts = collections.defaultdict(collections.Counter)
    resources, merged, both = (collections.defaultdict(collections.Counter) for _ in range(3))
    for url, resource, kind in truth:
        key = keys[url]
        resources[kind][resource] += 1
        merged[kind][key] += 1
        both[kind][resource, key] += 1
    pairs = lambda counter: sum(n * (n - 1) // 2 for n in counter.values())
    for kind in resources:
        counts[kind].update(urls=sum(resources[kind].values()), resources=len(resources[kind]), keys=len(merged[kind]),
                            same=pairs(resources[kind]), merged=pairs(merged[kind]), right=pairs(both[kind]))
    return counts


def total(counts):
    whole = collections.Counter()
    for counter in counts.values():
        whole.update(counter)
    return whole
