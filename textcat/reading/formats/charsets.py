"""Map the names of charsets in mail and web pages to encodings, as browsers do, and decode bytes.

The names are the labels of the Encoding Standard, <https://encoding.spec.whatwg.org/#names-and-labels>.
"""

import codecs
from functools import lru_cache

from textcat.reading.decoding import is_encoding

# Labels of the Standard that Python does not have, by Python's name of the encoding.
_LABELS = {
    "big5": "cn-big5 x-x-big5",
    "cp1250": "x-cp1250",
    "cp1251": "x-cp1251",
    "cp1252": "iso88591 x-cp1252",
    "cp1253": "x-cp1253",
    "cp1254": "iso88599 x-cp1254",
    "cp1255": "x-cp1255",
    "cp1256": "x-cp1256",
    "cp1257": "x-cp1257",
    "cp1258": "x-cp1258",
    "cp874": "dos-874 iso885911 windows-874",
    "cp932": "windows-31j x-sjis",
    "cp949": "cseuckr csksc56011987 iso-ir-149 ks_c_5601-1989 ksc_5601 windows-949",
    "euc_jp": "cseucpkdfmtjapanese x-euc-jp",
    "gb18030": "csgb2312 gb_2312 gb_2312-80 x-gbk",
    "iso8859-2": "iso88592",
    "iso8859-3": "iso88593",
    "iso8859-4": "iso88594",
    "iso8859-5": "iso88595",
    "iso8859-6": "csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i iso88596",
    "iso8859-7": "iso88597 sun_eu_greek",
    "iso8859-8": "csiso88598e csiso88598i iso-8859-8-e iso-8859-8-i iso88598 logical visual",
    "iso8859-10": "iso885910",
    "iso8859-13": "iso885913",
    "iso8859-14": "iso885914",
    "iso8859-15": "csisolatin9 iso885915",
    "koi8-r": "koi koi8",
    "koi8-u": "koi8-ru",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "mac-roman": "csmacintosh mac x-mac-roman",
    "utf-16-be": "unicodefffe",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff",
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
}
_ENCODING_OF = {label: encoding for encoding, labels in _LABELS.items() for label in labels.split()}
# Encodings that are often declared where a superset is meant.
_MEANT = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **dict.fromkeys(("iso8859-11", "tis-620"), "cp874"),
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
}
_NO_CHARSETS = frozenset(
    ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")
)  # names that only Python has
_LONGEST = 40  # maximum characters of a label


@lru_cache(maxsize=256)
def encoding_meant(label: str) -> str:
    """Return Python's name of the encoding for a charset label, such as "latin1"; "" if the label is unknown."""
    label = label.strip().lower()
    name = _ENCODING_OF.get(label, label)
    if len(name) > _LONGEST or "\0" in name or not is_encoding(name):
        return ""
    name = codecs.lookup(name).name
    return "" if name in _NO_CHARSETS else _MEANT.get(name, name)


def decoded_as(data: bytes, encoding: str, otherwise: str = "cp1252") -> str:
    """Decode bytes in an encoding; bytes that are not valid in it become U+FFFD.

    The encoding "" stands for UTF-8 or, if the bytes are not valid UTF-8, the encoding `otherwise`.
    """
    if encoding:
        return data.decode(encoding, "replace")
    try:
        return data.decode()
    except UnicodeError:
        return data.decode(otherwise, "replace")
