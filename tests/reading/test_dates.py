"""Dates in the forms of agencies, feeds, mail and Reuters become ISO 8601, and have an order."""

from datetime import datetime, timedelta, timezone

from cases import every
from hypothesis import given
from hypothesis import strategies as st

from textcat.reading.dates import date_range, date_text, day_of, iso_date, moment, month_of, time_of

FORMS = {
    "2018-11-21T16:25:32-05:00": "2018-11-21T16:25:32-05:00",
    "2018-11-21T16:25:32.150Z": "2018-11-21T16:25:32.150Z",
    " 2018-11-21T16:25:32Z\n": "2018-11-21T16:25:32Z",
    "20181121T162532-0500": "2018-11-21T16:25:32-05:00",
    "20181121T1625+01": "2018-11-21T16:25:00+01:00",
    "2018-11-21 16:25:32": "2018-11-21T16:25:32",
    "20181121": "2018-11-21",
    "2018-11-21": "2018-11-21",
    "Tue, 10 Jun 2003 04:00:00 GMT": "2003-06-10T04:00:00Z",
    "10 Jun 03 04:00 EST": "2003-06-10T04:00:00-05:00",
    "Thu, 1 Jan 1970 00:00:00 +0000 (UTC)": "1970-01-01T00:00:00+00:00",
    "10 Jun 2003 04:00 PM": "2003-06-10T16:00:00",
    "2024-10-27T02:30:00 CET": "2024-10-27T02:30:00",
    "2024-10-27T02:30:00EST": "2024-10-27T02:30:00-05:00",
    "2024-10-27 12:30 am GMT": "2024-10-27T00:30:00Z",
    "2024-10-27 12:30p": "2024-10-27T12:30:00",
    "26-FEB-1987 15:01:01.01": "1987-02-26T15:01:01.01",
    "10 June 2003": "2003-06-10",
    "2024-01-01T24:00:00Z": "2024-01-02T00:00:00Z",
    "20231231T2400+0530": "2024-01-01T00:00:00+05:30",
    "2016-12-31T23:59:60Z": "2016-12-31T23:59:60Z",
    # of newspapers, catalogues, XML and spreadsheets
    "5. März 1848": "1848-03-05",
    "1er août 1848": "1848-08-01",
    "5 juillet 1848": "1848-07-05",
    "5 de octubre de 1848": "1848-10-05",
    "söndag 5 maj 1848": "1848-05-05",
    "Sunday, March 5th, 1848": "1848-03-05",
    "Mar. 5, 1848, 10:15 am": "1848-03-05T10:15:00",
    "March 1848": "1848-03",
    "févr. 1848": "1848-02",
    "1848-03-05Z": "1848-03-05",
    "1848-03-05+01:00": "1848-03-05",
    "1848-03Z": "1848-03",
    "1848-03-00": "1848-03",
    "1848-00-00": "1848",
    "1848-XX-XX": "1848",
    "1848-03-XX": "1848-03",
    "1848/3/5": "1848-03-05",
    "5.3.1848": "1848-03-05",
    "05. 03. 1848 10:15": "1848-03-05T10:15:00",
    "1848年3月5日": "1848-03-05",
    "１８４８年": "1848",
    "１８４８-０３-０５": "1848-03-05",
    "1848–03–05": "1848-03-05",
    "\u200e5\u00a0March\u202f1848": "1848-03-05",
    "1848.0": "1848",
    "2003 Jun 5": "2003-06-05",
    "2003 Dec": "2003-12",
    "18480305.0": "1848-03-05",
}


@every("text", FORMS)
def test_a_date_is_written_in_iso_8601_with_its_zone(text):
    assert iso_date(text) == FORMS[text]
    assert iso_date(FORMS[text]) == FORMS[text]


@every(
    "text",
    [
        *("", "1987", "2018-11", "spring", "2018-02-30", "31 Foo 2018", "2018-11-21T25:00", "9" * 99, "٢٠٢٤-٠٥-٠١"),
        *("2024-01-01T10:00:00+99:99", "2024-01-01T10:00:00+24:00", "2024-01-01T10:00:00-0060", "2024-01-01T10:00:61Z"),
        *("2024-01-01T24:00:01Z", "2024-01-01T24:30", "9999-12-31T24:00:00", "1 Jan 2024 10:00 +9900"),
        *("5 marraskuu 1848", "mardi 1848", "5 juix 1848", "5 jui 1848", "12 Martins 1848", "5 ma 1848"),
        *("before 5 March 1848", "circa March 5, 1848", "ca. 1848", "1848?", "[1848]", "1848/49", "18XX", "-0044"),
        *("05/03/1848", "3.5.48", "31.4.1848", "1848/2/30", "1848年13月", "1900-02-29", "0000", "March 0000", "10.0"),
    ],
)
def test_what_is_no_date_that_is_known_stays_as_it_is(text):
    assert iso_date(text) == text


@every("text", ["2024-01-01T10:00:00+99:99", "2024-01-01T10:00+2400", "2024-01-01T10:00:61Z"])
def test_an_impossible_zone_or_second_is_no_time(text):
    assert (moment(text), time_of(text), day_of(text), month_of(text)) == (None, None, "", "")


def test_a_time_outside_of_the_years_1_to_9999_in_utc_is_the_first_or_last_one():
    assert moment("0001-01-01T00:00:00+01:00") == datetime(1, 1, 1, tzinfo=timezone.utc)
    assert moment("9999-12-31T23:59:59-12:00") == datetime.max.replace(tzinfo=timezone.utc)


def test_a_time_whose_zone_has_seconds_is_written_in_utc():
    zone = timezone(timedelta(minutes=53, seconds=28))
    assert iso_date(date_text(datetime(1850, 1, 1, tzinfo=zone))) == "1849-12-31T23:06:32+00:00"
    assert date_text(datetime(1, 1, 1, tzinfo=zone)) == "0001-01-01 00:00:00+00:53:28"  # none in UTC
    assert date_text(datetime(2024, 1, 1, tzinfo=timezone.utc)) == "2024-01-01 00:00:00+00:00"
    assert date_text(1990) == "1990"


def test_dates_are_ordered_by_the_moments_they_stand_for():
    dates = ["2018-11-21T16:25:32-05:00", "2018-11-21T21:25:31Z", "2018-11-21", "spring", ""]
    assert date_range(dates) == ("2018-11-21", "2018-11-21T16:25:32-05:00")
    assert date_range(["spring", ""]) is None
    assert date_range(["1987", "1987-02"]) == ("1987", "1987-02")


@given(st.text(max_size=40) | st.from_regex(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}T[0-9]{2}:?[0-9]{2}(Z|[+-][0-9]{4})?"))
def test_any_text_gives_a_date_that_stays_the_same(text):
    assert iso_date(iso_date(text)) == iso_date(text)
    assert (moment(iso_date(text)) is None) == (time_of(iso_date(text)) is None)


def test_the_day_of_a_date_is_that_of_its_own_zone():
    days = {
        "2018-11-21T23:25:32-05:00": "2018-11-21",
        "20181121T0025+01": "2018-11-21",
        "2018-11": "2018-11-01",
        "2018": "2018-01-01",
        "10 Jun 2003": "2003-06-10",
        "2018-13": "",
        "last year": "",
        "": "",
    }
    assert {text: day_of(text) for text in days} == days


def test_the_time_of_a_date_is_that_of_its_own_zone():
    times = {
        "2018-11-21T23:25:32-05:00": datetime(2018, 11, 21, 23, 25, 32),
        "2016-12-31T23:59:60.5Z": datetime(2016, 12, 31, 23, 59, 59, 500_000),
        "9999-12-31T23:59:59.9999999": datetime(9999, 12, 31, 23, 59, 59, 999_999),
        "2018-11": datetime(2018, 11, 1),
        "2018": datetime(2018, 1, 1),
        "2018-13": None,
        "2018-02-30T10:15:00Z": None,
        "2018-11-21T10:15:60Z": datetime(2018, 11, 21, 10, 15, 59),
        "2018-11-21": datetime(2018, 11, 21),
        "0000-01-01": None,
        "last year": None,
        "": None,
    }
    assert {text: time_of(text) for text in times} == times


def test_the_month_of_a_date_is_that_of_its_day():
    dates = [
        "1990-12-31T23:59:59-05:00",
        "1990-12-31",
        "1990-12",
        "1990",
        "",
        "last week",
        "1990-13-01",
        "1990-12-31 25",
    ]
    assert [month_of(date) for date in dates] == ["1990-12"] * 3 + ["1990-01"] + [""] * 4


@every("text", ["T25:00:00", "T10:00:00+99:99", "x", " 25", "\n1990-12-30"])
def test_a_day_with_anything_else_after_it_is_no_date(text):
    assert (day_of("1990-12-31" + text), month_of("1990-12-31" + text)) == ("", "")
    assert day_of("1990-12-31T23:59:59-05:00") == day_of("1990-12-31T10:00:00.5Z") == "1990-12-31"
    assert day_of("1990-02-30T10:00:00Z") == ""
