"""Make every fault that a build must survive, and print how many were tried and survived.

    python tests/faults.py                  all of them, in ten minutes or more; root, with a container engine
    python tests/faults.py --list           what they are, and which tests make them
    python tests/faults.py kill disk        those with one of these words in the name

Each fault is made by tests, which are part of `./foundry test`, too. Survived means: the same result afterwards,
nothing left behind, and a message that names the cause.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

TESTS = Path(__file__).resolve().parent
FAULTS: Mapping[str, Sequence[str]] = {
    "kill -9 at each stage of a build, and again until it is done": (
        "faults/test_faults.py::test_a_build_is_killed_while",
        "faults/test_faults.py::test_nothing_is_left_of_what_was_killed",
    ),
    "kill -9 while files are fetched": (
        "fetch/test_store.py::test_killed_process_blocks_no_one",
        "fetch/test_store.py::test_fetch_removes_files_of_a_killed_process",
    ),
    "kill -9 while an image is built": (
        "engine/test_client.py::test_images_of_a_killed_build_are_removed_children_first",
    ),
    "kill -9 while the base image is made": (
        "system/test_scratch.py::test_mounts_and_children_of_a_killed_mmdebstrap_are_gone",
    ),
    "kill -9 of a build from source": ("fromsource/test_build.py::test_a_killed_build_goes_on_where_it_was",),
    "kill -9 of what runs the kernels of a proof": (
        "testing/test_e2e.py::test_when_the_supervisor_is_killed_the_case_is_named_and_earlier_results_are_kept",
        "engine/test_client.py::test_a_container_ends_with_its_owner_and_another_s_goes_on",
    ),
    "kill -9 while the lock is written": (
        "faults/test_faults.py::test_a_lock_that_is_being_replaced_is_the_old_one_or_the_new_one",
    ),
    "kill -9 with temporary files": (
        "system/test_scratch.py::test_sweep_removes_the_scratch_folder_of_a_killed_process",
    ),
    "a push that breaks off": ("share/test_share.py::test_a_push_that_broke_off_sends_no_finished_layer_again",),
    "Ctrl-C": (
        "engine/test_client.py::test_an_interrupted_build_leaves_nothing",
        "fetch/test_store.py::test_ctrl_c_keeps_whole_files_only",
        "cli/test_verb.py::test_an_ended_verb_leaves_no_container",
    ),
    "a full disk: store, TMPDIR": ("faults/test_faults.py::test_a_disk_is_full_and_named",),
    "a full disk: engine, and a file of this machine": (
        "engine/test_diagnosis.py::test_a_full_disk_of_the_engine_is_said_to_be_full",
        "engine/test_answers.py::test_a_full_disk_of_this_machine_is_not_blamed_on_the_engine",
        "system/test_scratch.py::test_full_disk_leaves_nothing_to_remove_later",
    ),
    "an engine that is killed": (
        "faults/test_faults.py::test_the_engine_is_killed_during_a_build_and_named",
        "engine/test_diagnosis.py::test_an_engine_that_dies_during_a_build_is_not_blamed_on_what_was_built",
    ),
    "an engine that is silent, or answers garbage": (
        "engine/test_diagnosis.py::test_each_bad_answer_has_its_own_reason_and_advice",
        "engine/test_answers.py::test_hostile_answer_gives_a_readable_error",
        "engine/test_answers.py::test_hostile_answer_is_not_taken_for_an_engine",
    ),
    "two builds at once, and a second engine": (
        "faults/test_faults.py::test_two_builds_at_once_and_after_all_that_give_the_image_that_others_have",
        "fetch/test_store.py::test_two_that_build_the_same_part_build_it_once",
        "fetch/test_store.py::test_two_that_fetch_the_same_fetch_it_once",
    ),
    "a network that breaks off or lies": (
        "fetch/test_store.py::test_one_missing_file_does_not_lose_the_others",
        "fetch/test_store.py::test_other_file_than_locked_is_refused",
        "fetch/test_deb.py::test_an_archive_that_does_not_answer_is_a_fetch_error",
        "fetch/test_git.py::test_a_commit_that_nobody_gives_is_an_error_with_every_answer",
    ),
    "a store, a part or an image that lies": (
        "fetch/test_store.py::test_a_damaged_file_is_refused_and_fetched_again",
        "fetch/test_store.py::test_damaged_part_is_built_again",
        "images/test_provenance.py::test_different_image_under_the_noted_name_is_reported_and_not_taken",
        "health/test_doctor.py::test_every_damaged_file_of_a_store_is_found_and_removed",
    ),
    "a store or a checkout that is read-only": (
        "faults/test_faults.py::test_a_store_or_checkout_that_is_read_only_is_named",
    ),
    "another user than root, without rights": (
        "faults/test_faults.py::test_a_user_who_may_not_use_the_engine_is_told_so",
    ),
    "no HOME, an odd umask, locale and path": (
        "faults/test_faults.py::test_odd_surroundings_change_nothing",
        "verbs/test_repro.py::test_the_builds_find_other_surroundings",
    ),
    "a clock in 1970": (
        "faults/test_faults.py::test_a_clock_in_1970_changes_no_byte",
        "health/test_doctor.py::test_wrong_clocks_are_named",
    ),
    "too little memory": (
        "cli/test_verb.py::test_a_lack_of_memory_is_told_from_a_fault_of_a_file",
        "engine/test_client.py::test_a_process_that_dies_of_the_memory_limit_is_told_from_one_that_fails",
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only faults with one of these words in the name")
    parser.add_argument("--list", action="store_true", help="print the faults and their tests")
    given = parser.parse_args()
    chosen = {
        fault: [name.rpartition("::")[2] for name in names]
        for fault, names in FAULTS.items()
        if not given.words or any(word in fault for word in given.words)
    }
    if given.list:
        for fault, names in chosen.items():
            print(f"{fault}\n  " + "\n  ".join(names))
        return 0
    files = sorted({name.partition("::")[0] for fault in chosen for name in FAULTS[fault]})
    wanted = {name for names in chosen.values() for name in names}
    with TemporaryDirectory() as folder:
        junit = Path(folder, "junit.xml")
        # The stages of a build go on where the one before ended, so the tests of a file run in their order.
        only = " or ".join(sorted(wanted))
        words = [sys.executable, "-m", "pytest", "-q", "-k", only, f"--junitxml={junit}", *files]
        subprocess.run(words, cwd=TESTS, check=False)
        cases = [(case.get("name", "").partition("[")[0], case) for case in ElementTree.parse(junit).iter("testcase")]
    tried = survived = 0
    for fault, names in chosen.items():
        ran = [case for name, case in cases if name in names and case.find("skipped") is None]
        good = [case for case in ran if case.find("failure") is None and case.find("error") is None]
        tried, survived = tried + len(ran), survived + len(good)
        print(f"{'survived' if ran and len(good) == len(ran) else 'NOT':8}  {len(good)} of {len(ran)}  {fault}")
    print(f"{survived} of {tried} faults survived")
    return int(survived < tried or not tried)


if __name__ == "__main__":
    sys.exit(main())
