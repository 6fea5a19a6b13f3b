import csv
import gzip
import io

import pytest
from wording import refused

from heedmap.data.mimic import dotted, read

NOTE_COLUMNS = ("ROW_ID", "HADM_ID", "CHARTDATE", "CATEGORY", "DESCRIPTION", "ISERROR", "TEXT")
CODE_COLUMNS = ("ROW_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE")


def note(hadm, text="Some Text 5", date="2151-08-04", kind="Report", category="Discharge summary"):
    return {
        "HADM_ID": hadm,
        "CHARTDATE": date,
        "CATEGORY": category,
        "DESCRIPTION": kind,
        "TEXT": text,
    }


def table(folder, name, columns, rows, line_end="\n"):
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, lineterminator=line_end, restval="")
    writer.writeheader()
    writer.writerows(rows)
    data = file.getvalue().encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def export(folder, notes, codes, *, gz="", lower=False, line_end="\n"):
    """An export with these notes and these codes, `{admission: [code, ...]}`."""
    folder.mkdir(exist_ok=True)
    rows = [{"HADM_ID": hadm, "ICD9_CODE": code} for hadm, all_ in codes.items() for code in all_]
    for name, columns, there in (
        ("NOTEEVENTS", NOTE_COLUMNS, notes),
        ("DIAGNOSES_ICD", CODE_COLUMNS, rows),
    ):
        case = str.lower if lower else str
        written = [{case(key): value for key, value in row.items()} for row in there]
        table(folder, f"{case(name)}.csv{gz}", [case(c) for c in columns], written, line_end)
    return folder


def anemic(n=40):
    """Codes of n admissions, every fourth chronic, with a note for each."""
    codes = {100000 + i: ["4019", "28521" if i % 4 == 0 else "2851"] for i in range(n)}
    return [note(hadm) for hadm in codes], codes


def lists(folder, **splits):
    for split in ("train", "dev", "test"):
        text = "".join(f"{key}\n" for key in splits[split])
        (folder / f"{split}_50_hadm_ids.csv").write_text(text)


def by_key(rows):
    return {row.key: row for split in rows.values() for row in split}


@pytest.mark.parametrize(
    ("code", "with_dot"),
    [
        ("2851", "285.1"),
        ("25000", "250.00"),
        ("4019", "401.9"),
        ("486", "486"),
        ("V1082", "V10.82"),
        ("V10", "V10"),
        ("E8801", "E880.1"),
        ("E880", "E880"),
        (" e8801 ", "E880.1"),
        ("285.1", "285.1"),
        ("E880.1", "E880.1"),
        ("", ""),
    ],
)
def test_a_code_gets_its_dot(code, with_dot):
    assert dotted(code) == with_dot


def test_anemia_is_acute_or_chronic_and_what_is_both_or_neither_is_counted(tmp_path):
    notes, codes = anemic()
    odd = {
        1: ["2851", "2859", "28522"],
        2: ["4019"],
        3: ["28510"],
        4: ["28529"],
        5: ["E8285", "2850"],
    }
    export(tmp_path, [*notes, *map(note, odd)], codes | odd)
    rows, left_out = read(tmp_path, "anemia")
    label = {key: row.label for key, row in by_key(rows).items()}
    assert label == {
        **{str(key): "0" if "28521" in there else "1" for key, there in codes.items()},
        "3": "1",
        "4": "0",
    }
    assert left_out == {"both 285.1 and 285.2": 1, "neither 285.1 nor 285.2": 2}


def test_the_splits_are_stratified_disjoint_and_of_the_papers_shares(tmp_path):
    rows, left_out = read(export(tmp_path, *anemic(100)), "anemia")
    assert left_out == {}
    assert {name: len(split) for name, split in rows.items()} == {
        "train": 68,
        "dev": 12,
        "test": 20,
    }
    assert {name: sum(row.label == "0" for row in split) for name, split in rows.items()} == {
        "train": 17,
        "dev": 3,
        "test": 5,
    }
    assert len(by_key(rows)) == 100


def test_the_order_of_the_tables_rows_does_not_change_the_split(tmp_path):
    notes, codes = anemic()
    straight = read(export(tmp_path / "a", notes, codes), "anemia")
    backwards = dict(reversed(list(codes.items())))
    assert read(export(tmp_path / "b", notes[::-1], backwards), "anemia") == straight


def test_reports_come_before_addenda_and_each_by_date(tmp_path):
    notes, codes = anemic()
    notes[:1] = [
        note(100000, "fourth", "2151-08-06", "Addendum"),
        note(100000, "third", "2151-08-03", "Addendum"),
        note(100000, "second", "2151-08-05 00:00:00"),
        note(100000, "beside", category="Radiology"),
        note(100000, "First\nof \"two\", 'quoted'", "2151-08-04", "report "),
        note(100000, "fifth", "2151-08-06", "Addendum"),
    ]
    rows, left_out = read(export(tmp_path, notes, codes), "anemia")
    text = " ".join(by_key(rows)["100000"].tokens)
    assert text == "first of \" two \" , ' quoted ' second third fourth fifth"
    assert left_out == {}


def test_a_note_is_cleaned_as_the_paper_does(tmp_path):
    notes, codes = anemic()
    notes[3]["TEXT"] = "Seen ---- at [**Hospital 18**] on 5pm."
    rows, _ = read(export(tmp_path, notes, codes), "anemia")
    expected = ["seen", "-", "at", "<DE>", "on", "qqq", "."]
    assert by_key(rows)["100003"].tokens == expected


@pytest.mark.parametrize(
    "changes", [{"gz": ".gz"}, {"lower": True}, {"line_end": "\r\n"}, {"gz": ".gz", "lower": True}]
)
def test_gzip_small_letters_and_windows_line_ends_change_nothing(tmp_path, changes):
    notes, codes = anemic()
    notes[3]["TEXT"] = 'two\nlines, "quoted", NA'
    straight = read(export(tmp_path / "a", notes, codes), "anemia")
    assert read(export(tmp_path / "b", notes, codes, **changes), "anemia") == straight


def test_a_byte_order_mark_and_ids_as_decimals_change_nothing(tmp_path):
    notes, codes = anemic()
    straight = read(export(tmp_path / "a", notes, codes), "anemia")
    decimal = [row | {"HADM_ID": f"{row['HADM_ID']}.0"} for row in notes]
    export(tmp_path / "b", decimal, codes)
    file = tmp_path / "b" / "DIAGNOSES_ICD.csv"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read(tmp_path / "b", "anemia") == straight


def test_every_admission_left_out_is_counted_with_its_reason(tmp_path):
    notes, codes = anemic()
    codes |= {"": ["2851"], 7: [""], 8: ["2851"], 9: ["2851"], 10: ["2851"]}
    notes += [
        note(""),
        note(6),  # never coded
        note(8, category="Nursing"),
        note(9, kind="Draft"),
        note(10, " \n "),
    ]
    rows, left_out = read(export(tmp_path, notes, codes), "anemia")
    assert len(by_key(rows)) == 40
    assert left_out == {
        "diagnosis row without an admission or a code": 2,
        "discharge summary without an admission": 1,
        "no diagnosis code": 1,
        "discharge summary that is neither Report nor Addendum": 1,
        "no discharge summary": 2,
        "empty discharge summary": 1,
    }


def test_diabetes_follows_the_lists_of_admissions(tmp_path):
    codes = {i: ["4019", "25000" if i % 3 == 0 else "25001"] for i in range(1, 11)}
    export(tmp_path, [note(i) for i in [*codes, 12]], codes)
    lists(tmp_path, train=[9, 2, 3, 77], dev=[1], test=[6, 5])
    rows, left_out = read(tmp_path, "diabetes")
    assert {name: [(row.key, row.label) for row in split] for name, split in rows.items()} == {
        "train": [("9", "1"), ("2", "0"), ("3", "1")],
        "dev": [("1", "0")],
        "test": [("6", "1"), ("5", "0")],
    }
    assert left_out == {"no diagnosis code": 1, "in none of the lists of admissions": 5}


def test_a_listed_admission_without_a_note_is_counted(tmp_path):
    export(tmp_path, [note(1), note(2)], {1: ["25000"], 2: ["4019"], 3: ["4019"]})
    lists(tmp_path, train=[1], dev=[3], test=[2])
    rows, left_out = read(tmp_path, "diabetes")
    assert rows["dev"] == []
    assert left_out == {"no discharge summary": 1}


def test_lists_with_windows_line_ends_and_empty_lines_are_read(tmp_path):
    export(tmp_path, [note(i) for i in (1, 2, 3)], {i: ["25000"] for i in (1, 2, 3)})
    lists(tmp_path, train=[1], dev=[2], test=[3])
    (tmp_path / "train_50_hadm_ids.csv").write_bytes(b"\xef\xbb\xbf1\r\n\r\n")
    assert by_key(read(tmp_path, "diabetes")[0]).keys() == {"1", "2", "3"}


def test_diabetes_without_lists_is_split_here_and_says_so(tmp_path):
    codes = {i: ["25000" if i % 4 == 0 else "4019"] for i in range(1, 41)}
    rows, left_out = read(export(tmp_path, [note(i) for i in codes], codes), "diabetes")
    assert {name: len(split) for name, split in rows.items()} == {"train": 27, "dev": 5, "test": 8}
    assert sum(row.label == "1" for row in rows["test"]) == 2
    assert left_out == {"split drawn here: no train_50_hadm_ids.csv (kept)": 40}


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("dev_50_hadm_ids.csv", None, ("dev_50_hadm_ids.csv", "three splits")),
        (
            "dev_50_hadm_ids.csv",
            "hadm_id\n2\n",
            ("line 1", "HADM_ID", "'hadm_id'"),
        ),
        ("test_50_hadm_ids.csv", "3\n1\n", ("line 2", "admission 1", "train")),
        ("dev_50_hadm_ids.csv", "2\n2\n", ("line 2", "admission 2", "dev")),
    ],
)
def test_broken_lists_are_refused(tmp_path, name, text, named):
    export(tmp_path, [note(i) for i in (1, 2, 3)], {i: ["25000"] for i in (1, 2, 3)})
    lists(tmp_path, train=[1], dev=[2], test=[3])
    if text is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(text)
    with refused(*named):
        read(tmp_path, "diabetes")


@pytest.mark.parametrize("name", ["NOTEEVENTS", "DIAGNOSES_ICD"])
def test_a_missing_table_is_named_and_where_it_comes_from(tmp_path, name):
    export(tmp_path, *anemic())
    (tmp_path / f"{name}.csv").unlink()
    with refused(tmp_path, f"{name}.csv", f"{name}.csv.gz", name, "MIMIC-III", "PhysioNet"):
        read(tmp_path, "anemia")


@pytest.mark.parametrize("task", ["anemia", "diabetes"])
def test_a_missing_or_empty_folder_says_what_belongs_in_it(tmp_path, task):
    with refused("DIAGNOSES_ICD.csv", "PhysioNet"):
        read(tmp_path, task)
    with refused(tmp_path / "none", "PhysioNet"):
        read(tmp_path / "none", task)


@pytest.mark.parametrize(
    ("name", "column"), [("DIAGNOSES_ICD", "ICD9_CODE"), ("NOTEEVENTS", "DESCRIPTION")]
)
def test_a_missing_column_is_named_with_its_table(tmp_path, name, column):
    export(tmp_path, *anemic())
    file = tmp_path / f"{name}.csv"
    file.write_text(file.read_text().replace(column, "OTHER", 1))
    with refused(f"{name}.csv", column, "ROW_ID", "OTHER", name, "MIMIC-III"):
        read(tmp_path, "anemia")


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", ("HADM_ID, ICD9_CODE", "none")),
        (b"HADM_ID,ICD9_CODE\n1,2851\n2,2851,x\n", ("line 3", "2", "3")),
        (b"HADM_ID,ICD9_CODE\n1\n", ("line 2", "2", "1")),
        (b'HADM_ID,ICD9_CODE\n1,2851\n2,"2851\n', ("CSV", "line 2")),
        (b"HADM_ID,ICD9_CODE\n1,\xff\n", ("CSV", "UTF-8", "0xff")),
    ],
)
def test_a_broken_table_is_refused_in_one_line(tmp_path, data, named):
    export(tmp_path, *anemic())
    (tmp_path / "DIAGNOSES_ICD.csv").write_bytes(data)
    with refused("DIAGNOSES_ICD.csv", *named):
        read(tmp_path, "anemia")


def test_empty_lines_in_a_table_change_nothing(tmp_path):
    straight = read(export(tmp_path, *anemic()), "anemia")
    with (tmp_path / "DIAGNOSES_ICD.csv").open("a") as file:
        file.write("\n\n")
    assert read(tmp_path, "anemia") == straight


@pytest.mark.parametrize("cut", [5, 60])
def test_a_broken_gzip_file_is_refused(tmp_path, cut):
    export(tmp_path, *anemic(), gz=".gz")
    file = tmp_path / "NOTEEVENTS.csv.gz"
    file.write_bytes(file.read_bytes()[:cut])
    with refused("NOTEEVENTS.csv.gz", "CSV"):
        read(tmp_path, "anemia")


def test_two_files_for_one_table_are_refused(tmp_path):
    export(tmp_path, *anemic())
    export(tmp_path, *anemic(), gz=".gz")
    with refused("DIAGNOSES_ICD.csv", "DIAGNOSES_ICD.csv.gz", "DIAGNOSES_ICD"):
        read(tmp_path, "anemia")


def test_notes_that_cannot_be_ordered_are_refused(tmp_path):
    notes, codes = anemic()
    notes[2]["CHARTDATE"] = "8/4/2151"
    with refused("CHARTDATE '8/4/2151'", "admission 100002"):
        read(export(tmp_path, notes, codes), "anemia")


def test_tables_without_rows_are_refused_with_what_was_left_out(tmp_path):
    with refused("anemia", "empty"):
        read(export(tmp_path, [], {}), "anemia")
    with refused("anemia", "(no discharge summary: 40)"):
        read(export(tmp_path, [], anemic()[1]), "anemia")


def test_too_few_admissions_to_split_are_refused_with_their_numbers(tmp_path):
    with refused("three splits", "1 and 2"):
        read(export(tmp_path, *anemic(3)), "anemia")


def test_a_task_of_another_name_is_refused(tmp_path):
    with refused("'knee'", "diabetes or anemia"):
        read(tmp_path, "knee")
