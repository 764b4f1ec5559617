"""The formats of news agencies and feeds: JSON and XML of many items a file."""

from __future__ import annotations

from collections.abc import Callable

from .checks import check_file
from .inputs import chosen, documents, with_settings
from .target import Target, split_words

_NINJS = (
    b'[{"uri": "urn:1", "version": "2", "versioncreated": "2024-05-01T10:00:00+02:00", "pubstatus": "usable",\n'
    b'"headline": "Tin", "body_xhtml": "<p>Tin &amp; ore</p>", "subject": [{"code": "medtop:1", "name": "metal"}]},\n'
    b'{"uri": "urn:2", "versionCreated": "2024-05-02", "headlines": [{"role": "main", "value": "Gold"}], "version": "",'
    b'"bodies": [{"contentType": "text/html", "value": "<b>Gold</b>"}], "subjects": [{"uri": "http://a/b/1"}]}]'
)
_JSON_FEED = (
    b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1", "content_html": "<p>Tin", "tags": ["a"],\n'
    b'"date_published": "2024-05-01T10:00:00Z"}, {"id": 2, "content_text": "Gold", "date_modified": "2024"}]}'
)
_WORDS_OF_JSON_FEED = split_words('"items"¦"id"¦"content_text"¦"content_html"¦"tags"¦null¦[¦]¦},{')
_WORDS_OF_NINJS = split_words(
    '"uri"¦"items"¦"item"¦"data"¦"headline"¦"bodies"¦"body_text"¦"subjects"¦"value"¦'
    '"pubstatus"¦"canceled"¦"embargoed"¦"2999-01-01"¦"type"¦"event"¦null¦[¦]¦},{¦"versioncreated"¦'
    '\\ud83d¦&lt;¦<p>¦"version"¦1e9¦"text"'
)
_HEAD = b'<?xml version="1.0" encoding="%s"?>\n'
_G2 = _HEAD % b"utf-8" + (
    b'<newsMessage xmlns="http://iptc.org/std/nar/2006-10-01/"><itemSet><packageItem guid="p"/>'
    b'<newsItem guid="urn:1" version="1" xml:lang="en"><itemMeta><versionCreated>2024-05-01T10:00:00Z</versionCreated>'
    b'<pubStatus qcode="stat:usable"/></itemMeta><contentMeta><subject qcode="medtop:1"><name>metal</name></subject>'
    b"<headline>Tin</headline></contentMeta><contentSet><inlineXML><nitf><body><body.content><p>Tin &amp; &eacute;</p>"
    b"</body.content></body></nitf></inlineXML></contentSet></newsItem><newsItem guid='urn:2'><contentSet><inlineData>"
    b"Gold</inlineData></contentSet></newsItem></itemSet></newsMessage>"
)
_NITF = _HEAD % b"iso-8859-1" + (
    b'<!DOCTYPE nitf [<!ENTITY a "b">]><nitf xml:lang="en"><head><title>T</title><tobject><tobject.subject '
    b'tobject.subject.refnum="1"/></tobject><docdata management-status="usable"><doc-id id-string="1"/><date.issue '
    b'norm="20240501T101500Z"/><identified-content><classifier type="a" value="b">c</classifier></identified-content>'
    b"</docdata></head><body><body.head><hedline><hl1>Tin</hl1></hedline></body.head><body.content><p>T\xe9n</p>"
    b"</body.content></body></nitf>"
)
_NEWSML = _HEAD % b"utf-8" + (
    b"<NewsML><NewsItem><Identification><NewsIdentifier><ProviderId>a</ProviderId><DateId>20240501</DateId><NewsItemId>1"
    b'</NewsItemId><RevisionId>1</RevisionId></NewsIdentifier></Identification><NewsManagement><Status FormalName="'
    b'Usable"/></NewsManagement><NewsComponent><NewsLines><HeadLine>Tin</HeadLine></NewsLines><ContentItem><DataContent>'
    b"<p>Tin</p></DataContent></ContentItem></NewsComponent></NewsItem></NewsML>"
)
_RSS = _HEAD % b"utf-8" + (
    b'<rss xmlns:content="c"><channel><language>en</language><item><title>Tin</title><guid>1</guid><pubDate>Wed, 1 May '
    b'2024 10:15:00 GMT</pubDate><category domain="d">c</category><description>&lt;b&gt;T</description>'
    b"<content:encoded><![CDATA[<p>Tin</item>]]></content:encoded></item><!-- <item> --><item/></channel></rss>"
)
_ATOM = _HEAD % b"utf-8" + (
    b'<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><entry><title type="html">T&lt;b&gt;</title><id>1</id>'
    b'<updated>2024-05-01T10:00:00Z</updated><category term="a" scheme="b" label="c"/><content type="xhtml"><div><p>Tin'
    b"</p></div></content></entry></feed>"
)
_TEI = _HEAD % b"utf-8" + (
    b'<teiCorpus xmlns="http://www.tei-c.org/ns/1.0"><teiHeader/><TEI xml:id="a"><teiHeader><fileDesc><tit'
    b'leStmt><title level="a">Tin</title></titleStmt><publicationStmt><date when="1860"/><idno>1</idno></p'
    b"ublicationStmt></fileDesc>"
    b'<encodingDesc><classDecl><taxonomy xml:id="t"><category xml:id="c"><catDesc>d</catDesc></category></taxonomy></'
    b'classDecl></encodingDesc><profileDesc><langUsage><language ident="de" usage="9"/></langUsage><textClass><keywords'
    b' scheme="#s"><term ref="#c">ore</term></keywords><classCode scheme="d">3</classCode><catRef target="#c #e"/>'
    b'</textClass></profileDesc></teiHeader><text><front><titlePage/><div type="abstract"><p>a</p></div></front><body>'
    b'<p>Erz-<lb/>grube <choice><sic>a</sic><corr>b</corr></choice> Berg<lb break="no"/>werk<note>n</note></p></body>'
    b"</text></TEI><TEI.2><text><body>b &eacute;</body></text></TEI.2></teiCorpus>"
)
MARKUP = (
    *(b"<!--", b"-->", b"<![CDATA[", b"]]>", b"&a;", b"&amp;", b"&#0;", b"&#xd800;", b"<x:y>", b"/>", b"</", b"<?x ?>"),
    *(b'xmlns="a"', b'xmlns:b="c"', b'xml:lang="de"', b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"\xff", b"\0", b"<a>" * 300),
    *(b'encoding="utf-16"', b'encoding="rot13"', b'encoding="utf-7"', b'encoding="ebcdic-cp-us"', b">", b'"'),
)


def _check(form: str, ending: str) -> Callable[[bytes], None]:
    def check(data: bytes) -> None:
        settings, way, data = chosen(data)
        settings = settings._replace(format=form, fields=() if settings.plain_quotes else ("*",))
        check_file(f"a{ending}", form, data, settings, way)
        documents("news", f"a{ending}", data)

    return check


def _target(form: str, seed: bytes, names: bytes, ending: str = ".xml") -> Target:
    """Return the target of a format of XML; `names` are names of elements, which are tried as tags, too."""
    tags = [tag for name in names.split() for tag in (b"<%s>" % name, b"</%s>" % name, b"<%s/>" % name)]
    utf16 = seed.decode("latin-1").replace("iso-8859-1", "utf-16").encode("utf-16")
    return Target(_check(form, ending), lambda: with_settings(seed, utf16, seed[:-9], b""), (*MARKUP, *tags))


NINJS = Target(_check("ninjs", ".json"), lambda: with_settings(_NINJS, _NINJS[1:-1], b"{}"), _WORDS_OF_NINJS)
JSON_FEED = Target(
    _check("json-feed", ".json"), lambda: with_settings(_JSON_FEED, _JSON_FEED[:-9], b"{}"), _WORDS_OF_JSON_FEED
)
G2 = _target("newsml-g2", _G2, b"newsItem newsMessage planningItem contentSet inlineXML inlineData nitf html embargoed")
NITF = _target("nitf", _NITF, b"nitf head docdata body body.content body.head block p media hl1")
NEWSML = _target("newsml", _NEWSML, b"NewsItem NewsML NewsComponent DataContent nitf html Status")
RSS = _target("rss", _RSS, b"item channel title description guid category content:encoded pubDate")
TEI = _target(
    "tei",
    _TEI,
    b"TEI TEI.2 teiCorpus teiHeader text body front div choice app note lb w del title date idno term catRef language",
)
ATOM = _target("atom", _ATOM, b"entry feed title content summary id category")
