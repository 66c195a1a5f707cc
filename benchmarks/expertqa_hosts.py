"""A small map from web hosts to source types, for ExpertQA's evidence; first rule that fits wins.

Rules look at the host alone and were written without its labels. Whole labels of the host name
count, never substrings, so that ``gov`` does not match ``governance.example``. It is a stand-in for
a registry of publishers: most web hosts are none of these and stay ``other_web``.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

UNIVERSITY, OTHER = "university", "other_web"

# A host belongs to an entry when it equals it or ends in "." + entry.
HOSTS: dict[str, tuple[str, ...]] = {
    "peer_reviewed": (
        "ncbi.nlm.nih.gov", "nature.com", "springer.com", "springeropen.com", "frontiersin.org",
        "tandfonline.com", "mdpi.com", "biomedcentral.com", "plos.org", "onlinelibrary.wiley.com",
        "sciencedirect.com", "cell.com", "thelancet.com", "nejm.org", "bmj.com", "jamanetwork.com",
        "academic.oup.com", "sagepub.com", "jstor.org", "pnas.org", "science.org", "acs.org",
        "rsc.org", "iop.org", "aps.org", "ieee.org", "acm.org", "hindawi.com", "karger.com",
        "ahajournals.org", "annualreviews.org", "cochranelibrary.com", "journals.lww.com",
        "royalsocietypublishing.org", "elifesciences.org", "scielo.br", "apa.org", "doi.org",
        "cambridge.org", "muse.jhu.edu", "liebertpub.com", "physiology.org", "asm.org",
    ),
    "government": (
        "nhs.uk", "nice.org.uk", "who.int", "europa.eu", "un.org", "imf.org", "worldbank.org",
        "oecd.org", "unesco.org", "unicef.org", "unhcr.org", "ilo.org", "parliament.uk", "fao.org",
    ),
    "established_news": (
        "bbc.co.uk", "bbc.com", "reuters.com", "apnews.com", "nytimes.com", "washingtonpost.com",
        "theguardian.com", "ft.com", "economist.com", "wsj.com", "bloomberg.com", "cnn.com",
        "cnbc.com", "nbcnews.com", "cbsnews.com", "abcnews.go.com", "npr.org", "pbs.org",
        "time.com", "forbes.com", "theatlantic.com", "newyorker.com", "usatoday.com", "latimes.com",
        "independent.co.uk", "telegraph.co.uk", "aljazeera.com", "dw.com", "politico.com",
        "usnews.com", "businessinsider.com", "newscientist.com", "scientificamerican.com",
        "nationalgeographic.com", "smithsonianmag.com", "theconversation.com",
    ),
    "blog": (
        "blogspot.com", "wordpress.com", "medium.com", "substack.com", "tumblr.com", "typepad.com",
        "livejournal.com", "weebly.com", "wixsite.com", "squarespace.com",
    ),
    "user_generated": (
        "wikipedia.org", "wikivisually.com", "wikihow.com", "fandom.com", "reddit.com", "quora.com",
        "stackexchange.com", "stackoverflow.com", "answers.com", "yahoo.com", "youtube.com",
        "facebook.com", "linkedin.com", "twitter.com", "pinterest.com", "scribd.com",
        "slideshare.net", "coursehero.com", "chegg.com", "quizlet.com", "studocu.com", "github.com",
    ),
}  # fmt: skip

# A whole label anywhere in the host's name.
LABELS: dict[str, tuple[str, ...]] = {
    "government": ("gov", "mil", "gob", "gouv", "govt"),
    UNIVERSITY: ("edu", "ac"),
    "blog": ("blog", "blogs"),
    "user_generated": ("forum", "forums"),
}

_ADDRESS = re.compile(r"^(?:\[\d+\]\s*)?(https?://\S+)")


def host_of(evidence: str) -> str | None:
    """Host of an evidence string ("[n] URL", perhaps with a passage), without ``www.``, or None."""
    found = _ADDRESS.match(evidence.strip())
    try:
        host = urlsplit(found[1]).hostname if found else None
    except ValueError:
        return None
    return host.removeprefix("www.") if host else None


def type_of(host: str) -> str:
    """Source type of a host by the lists, then by the labels of its name, else ``other_web``."""
    for kind, entries in HOSTS.items():
        if any(host == entry or host.endswith("." + entry) for entry in entries):
            return kind
    parts = host.split(".")
    for kind, labels in LABELS.items():
        if any(label in parts for label in labels):
            return kind
    return OTHER
