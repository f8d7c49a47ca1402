"""Questions of API servers to answers."""

import json
from typing import Any

import pytest
from reviews import NOTHING_KNOWN, RULES, patch_of, patched, respond, review

from vcjob.admission.configurations import WEBHOOKS
from vcjob.admission.reviewing import PATHS, Known, NotAReview, Rules, answer, read_request
from vcjob.api.kinds import POD, POD_GROUP, PRIORITY_CLASS, QUEUE
from vcjob.api.names import HIERARCHY, HIERARCHY_WEIGHTS, SERVICE_LABELS, WIDENING
from vcjob.api.types import Object
from vcjob.core.check import Lookup

POD_SPEC = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}


def job(**spec: Any) -> Object:
    tasks = [{"name": "worker", "replicas": 2, "template": {"spec": POD_SPEC}}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "training", "namespace": "default"},
        "spec": {"tasks": tasks, **spec},
    }


def queue(name: str = "team", **spec: Any) -> Object:
    return {
        "apiVersion": QUEUE.api_version,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_every_webhook_has_an_answer() -> None:
    assert {webhook.path for webhook in WEBHOOKS} == set(PATHS)
    for webhook in WEBHOOKS:
        for operation in webhook.operations:
            respond(webhook.path, review(None, operation, old={}, kind=webhook.kind))


def test_defaults_are_added_one_by_one() -> None:
    patch = patch_of(respond("/jobs/mutate", review(job(plugins={"mpi": []}))))
    assert [(one["op"], one["path"]) for one in patch] == [
        ("add", "/spec/queue"),
        ("add", "/spec/schedulerName"),
        ("add", "/spec/maxRetry"),
        ("add", "/spec/tasks/0/minAvailable"),
        ("add", "/spec/tasks/0/maxRetry"),
        ("add", "/spec/minAvailable"),
        ("add", "/spec/plugins/svc"),
        ("add", "/spec/plugins/ssh"),
    ]


def test_a_complete_object_gets_no_patch() -> None:
    complete = patched(job(), respond("/jobs/mutate", review(job())))
    response = respond("/jobs/mutate", review(complete))
    assert response == {"uid": response["uid"], "allowed": True}
    asked = review(queue(weight=1, reclaimable=True), kind=QUEUE)
    assert "patch" not in respond("/queues/mutate", asked)


def test_one_problem_is_told_in_one_sentence() -> None:
    known = Known(Lookup({"default": {}}, frozenset()))
    response = respond("/jobs/validate", review(job(queue="defautl")), RULES, known)
    assert not response["allowed"]
    status = response["status"]
    assert status["message"] == ('spec.queue: there is no queue "defautl"; did you mean "default"?')
    assert (status["code"], status["reason"], status["status"]) == (422, "Invalid", "Failure")
    assert status["details"] == {
        "group": "batch.volcano.sh",
        "kind": "Job",
        "name": "training",
        "causes": [
            {
                "reason": "FieldValueInvalid",
                "field": "spec.queue",
                "message": 'there is no queue "defautl"; did you mean "default"?',
            }
        ],
    }


def test_several_problems_are_told_in_one_message() -> None:
    response = respond("/jobs/validate", review(job(queue=7, minAvailable=9)))
    assert response["status"]["message"].startswith("2 problems: (1) spec.")
    assert "; (2) spec." in response["status"]["message"]
    assert len(response["status"]["details"]["causes"]) == 2


def test_thousands_of_problems_still_fit_into_an_answer() -> None:
    tasks = [{"name": f"t{index}", "replicas": -1} for index in range(3000)]
    response = respond("/jobs/validate", review(job(tasks=tasks)))
    assert response["status"]["message"].startswith("6000 problems: ")
    assert response["status"]["message"].endswith("and 5950 more")
    assert len(json.dumps(response)) < 50_000


def test_what_only_deserves_a_word_is_a_warning_and_admitted() -> None:
    told = {**job(), "metadata": {"name": "j", "annotations": {"vcjob.dev/suspnd": "true"}}}
    response = respond("/jobs/validate", review(told))
    assert response["allowed"]
    assert response["warnings"] == [
        'metadata.annotations["vcjob.dev/suspnd"]: no annotation vcjob.dev/suspnd is known; did '
        'you mean "vcjob.dev/suspend"?'
    ]


def test_many_and_long_warnings_are_cut() -> None:
    unknown = {f"{number}{'x' * 300}": "" for number in range(40)}
    tasks = [{"name": "a", "replicas": 1, "template": {"spec": {**POD_SPEC, **unknown}}}]
    response = respond("/jobs/validate", review(job(tasks=tasks)))
    assert response["allowed"]
    *shown, last = response["warnings"]
    assert {len(warning) for warning in shown} == {255}
    assert last == "and 29 warnings more; vcjob validate shows all"


def test_text_of_a_manifest_cannot_write_control_characters() -> None:
    response = respond("/jobs/validate", review(job(queue="a\x1b[31m\nb")))
    assert "\\x1b[31m\\x0ab" in json.dumps(response["status"]["message"]).replace("\\\\", "\\")
    assert response["status"]["message"].isprintable()


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_is_answered_alike(dry_run: bool) -> None:
    assert patch_of(respond("/jobs/mutate", review(job(), dryRun=dry_run)))


class TestUpdates:
    def test_of_what_may_change(self) -> None:
        response = respond("/jobs/validate", review(job(minAvailable=1), "UPDATE", old=job()))
        assert response["allowed"]

    def test_of_what_may_not(self) -> None:
        changed = review(job(queue="other"), "UPDATE", old=job(queue="default"))
        response = respond("/jobs/validate", changed)
        assert "spec.queue cannot be changed" in response["status"]["message"]

    def test_of_metadata_of_a_job_that_would_be_refused_today(self) -> None:
        wrong = job(tasks=[], queue=5)
        finalized = {**wrong, "metadata": {"name": "training", "finalizers": []}}
        assert respond("/jobs/validate", review(finalized, "UPDATE", old=wrong))["allowed"]

    def test_of_subresources(self) -> None:
        asked = review(job(minAvailable=-5), "UPDATE", old=job(), subResource="status")
        assert respond("/jobs/validate", asked)["allowed"]


class TestWhatIsNotKnown:
    WHY = "the webhook may not list it"

    @pytest.mark.parametrize(
        ("kind", "field"), [(QUEUE, "queue"), (PRIORITY_CLASS, "priorityClassName")]
    )
    def test_is_told_and_refuses_nothing(self, kind: Any, field: str) -> None:
        known = Known(Lookup(), {kind: self.WHY})
        response = respond("/jobs/validate", review(job(**{field: "unheard-of"})), RULES, known)
        assert response["allowed"]
        assert response["warnings"] == [
            f'spec.{field}: whether there is a {kind} "unheard-of" was not checked: {self.WHY}'
        ]

    def test_is_not_told_to_those_who_do_not_refer_to_it(self) -> None:
        known = Known(Lookup(), {PRIORITY_CLASS: self.WHY})
        assert "warnings" not in respond("/jobs/validate", review(job()), RULES, known)


class TestAnnotationsThatWidenRights:
    @staticmethod
    def annotated(value: str = '{"a": "b"}') -> Object:
        metadata = {"name": "j", "annotations": {SERVICE_LABELS: value}}
        return {**job(plugins={"svc": []}), "metadata": metadata}

    def test_draw_a_warning(self) -> None:
        response = respond("/jobs/validate", review(self.annotated()))
        assert response["allowed"]
        (warning,) = response["warnings"]
        assert f"{SERVICE_LABELS} has no effect" in warning
        assert "--allow-annotation" in warning

    def test_draw_none_where_they_are_allowed(self) -> None:
        rules = Rules(RULES.plugins, frozenset(WIDENING))
        assert "warnings" not in respond("/jobs/validate", review(self.annotated()), rules)

    def test_draw_one_only_when_they_are_written(self) -> None:
        same = review(self.annotated(), "UPDATE", old=self.annotated())
        other = review(self.annotated(), "UPDATE", old=self.annotated("{}"))
        assert "warnings" not in respond("/jobs/validate", same)
        assert "warnings" in respond("/jobs/validate", other)


class TestQueues:
    KNOWN = Known(Lookup({"default": {}, "team": {}, "a": {"spec": {"parent": "team"}}}))

    def test_get_what_they_leave_out(self) -> None:
        patch = patch_of(respond("/queues/mutate", review(queue(weight=2), kind=QUEUE)))
        assert patch == [{"op": "add", "path": "/spec/reclaimable", "value": True}]

    @pytest.mark.parametrize(("name", "allowed"), [("default", False), ("root", False),
                                                   ("team", False), ("a", True)])  # fmt: skip
    @pytest.mark.parametrize("named", [True, False], ids=["one", "of a collection"])
    def test_that_are_needed_cannot_be_deleted(self, name: str, allowed: bool, named: bool) -> None:
        told = {} if named else {"name": ""}
        asked = review(None, "DELETE", old=queue(name), kind=QUEUE, **told)
        response = respond("/queues/validate", asked, RULES, self.KNOWN)
        assert response["allowed"] == allowed
        if not allowed:
            assert (response["status"]["code"], response["status"]["reason"]) == (403, "Forbidden")
            assert name in response["status"]["message"]

    def test_are_checked_when_they_are_created_and_changed(self) -> None:
        wrong = queue("b", parent="nowhere")
        created = review(wrong, kind=QUEUE)
        changed = review(wrong, "UPDATE", old=queue("b"), kind=QUEUE)
        touched = review(wrong, "UPDATE", old=wrong, kind=QUEUE)
        answers = [
            respond("/queues/validate", one, RULES, self.KNOWN)["allowed"]
            for one in (created, changed, touched)
        ]
        assert answers == [False, False, True]

    def test_places_by_older_annotations_begin_at_the_root(self) -> None:
        old = queue(weight=1, reclaimable=True)
        old["metadata"]["annotations"] = {HIERARCHY: "sci/dev", HIERARCHY_WEIGHTS: "2/3"}
        response = respond("/queues/mutate", review(old, kind=QUEUE))
        assert patched(old, response)["metadata"]["annotations"] == {
            HIERARCHY: "root/sci/dev",
            HIERARCHY_WEIGHTS: "1/2/3",
        }
        again = review(patched(old, response), kind=QUEUE)
        assert "patch" not in respond("/queues/mutate", again)

    def test_places_by_older_annotations_are_checked_when_they_change(self) -> None:
        old, new = queue("a", weight=1), queue("a", weight=1)
        new["metadata"]["annotations"] = {HIERARCHY: "root/a", HIERARCHY_WEIGHTS: "1"}
        changed = review(new, "UPDATE", old=old, kind=QUEUE)
        touched = review(new, "UPDATE", old=new, kind=QUEUE)
        answers = [
            respond("/queues/validate", one, RULES, self.KNOWN) for one in (changed, touched)
        ]
        assert [one["allowed"] for one in answers] == [False, True]


class TestPodGroups:
    KNOWN = Known(Lookup({"default": {}, "shut": {"status": {"state": "Closed"}}}))

    @pytest.mark.parametrize(("queue", "allowed"), [("default", True), ("shut", False),
                                                    ("nowhere", False)])  # fmt: skip
    def test_are_for_queues_that_are_open(self, queue: str, allowed: bool) -> None:
        asked = {"metadata": {"name": "g"}, "spec": {"queue": queue}}
        question = review(asked, kind=POD_GROUP)
        response = respond("/podgroups/validate", question, RULES, self.KNOWN)
        assert response["allowed"] == allowed
        if not allowed:
            assert queue in response["status"]["message"]


@pytest.mark.parametrize(
    ("path", "asked", "said"),
    [
        ("/jobs/validate", review(job(), kind=POD), "pods. is not answered at /jobs/validate"),
        ("/jobs/mutate", review(queue(), kind=QUEUE), "queues.scheduling.volcano.sh is not"),
        ("/jobs/mutate", review(job(), "UPDATE", old=job()), "UPDATE is not answered"),
        ("/jobs/validate", review(None, "DELETE", old=job()), "DELETE is not answered"),
    ],
)
def test_questions_for_somebody_else_are_refused_with_the_reason(
    path: str, asked: Object, said: str
) -> None:
    response = respond(path, asked)
    assert not response["allowed"]
    assert response["status"]["code"] == 400
    assert said in response["status"]["message"]


def test_what_is_no_object_is_told_once() -> None:
    known = Known(Lookup({"default": {}}))
    response = respond("/jobs/validate", review([]), RULES, known)
    assert response["status"]["message"] == "the object must be an object, but is a list"


def test_another_version_of_jobs_is_not_understood() -> None:
    asked = review(job())
    asked["request"]["resource"]["version"] = "v1"
    assert "version v1" in respond("/jobs/validate", asked)["status"]["message"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "is no JSON"),
        (b"{", "is no JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"[]", "is no AdmissionReview"),
        (b"null", "is no AdmissionReview"),
        (b'{"kind": "Pod", "apiVersion": "v1"}', "is no AdmissionReview"),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}', "only"),
        (b'{"kind": "AdmissionReview"}', "None are not understood"),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "not complete"),
        (json.dumps(review(job(), uid="")).encode(), "has no uid"),
        (json.dumps(review(job(), uid=5)).encode(), "not complete"),
        (json.dumps(review(job(), resource=[])).encode(), "not complete"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "levels"),
        (b"[" * 200_000, "levels"),
    ],
)
def test_what_is_no_question_is_refused_with_the_reason(body: bytes, said: str) -> None:
    with pytest.raises(NotAReview) as refused:
        read_request(body)
    assert refused.value.code == 400
    assert said in str(refused.value)


@pytest.mark.parametrize("junk", [None, 5, "job", [], [1], {}, {"spec": []}, {"metadata": 4}])
@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda one: one.path)
def test_whatever_stands_in_place_of_an_object_is_answered(webhook: Any, junk: Any) -> None:
    for operation in webhook.operations:
        question = review(junk, operation, old=junk, kind=webhook.kind)
        request = read_request(json.dumps(question).encode())
        assert "allowed" in answer(webhook.path, request, RULES, NOTHING_KNOWN)["response"]
