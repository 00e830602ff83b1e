"""Answers of searches are kept for equal questions, with the choices made for them."""

from math import inf

from comet.passes.search import Candidate, Cost, Found, cheapest, session
from comet.passes.search.answers import Answers


def asked(answers: Answers[str], question: str, made: list[str]) -> str:
    """Return the answer to a question, which is `made` if there is none so far."""
    with answers.to(question) as answer:
        if answer.found is None:
            made.append(question)
            candidate = Candidate("only", lambda: Found(f"{question}!", Cost(1.0)))
            answer.found = cheapest("choice", "@f", [candidate]).result
        return answer.found


def test_an_equal_question_has_the_answer_and_the_choices_of_the_first():
    answers, made = Answers[str](2), list[str]()
    with session() as current:
        with current.trying("one", None):
            assert asked(answers, "a", made) == "a!"
        with current.trying("other", None), current.trying("inner", None):
            assert asked(answers, "a", made) == "a!"
        first, second = current.choices
    assert made == ["a"]
    assert (first.within, second.within) == (("one",), ("other", "inner"))
    assert first.rows == second.rows


def test_the_answers_asked_least_recently_are_forgotten():
    answers, made = Answers[str](2), list[str]()
    for question in ("a", "b", "a", "c", "a", "b"):
        asked(answers, question, made)
    assert made == ["a", "b", "c", "b"]


def test_an_answer_before_a_deadline_is_not_kept():
    answers, made = Answers[str](2), list[str]()
    with session() as current:
        with current.until(1e12):
            asked(answers, "a", made)
        with current.until(inf):
            asked(answers, "a", made)
            asked(answers, "a", made)
    assert made == ["a", "a"]


def test_a_search_that_fails_leaves_no_answer():
    answers, made = Answers[str](2), list[str]()
    try:
        with answers.to("a"):
            raise ValueError
    except ValueError:
        pass
    assert asked(answers, "a", made) == "a!"
    assert made == ["a"]
