"""The run of CI that a project is in."""

from __future__ import annotations

from pytest_perfgate.model.project import ci_run


def test_jenkins_names_its_run_and_a_tag_of_a_laptop_is_none() -> None:
    assert ci_run({"JENKINS_URL": "https://ci", "BUILD_TAG": "job-7"}) == "job-7"
    assert ci_run({"BUILD_TAG": "mine"}) == ci_run({"TF_BUILD": "True", "CI": "", "BUILD_BUILDID": "3"}) == ""
