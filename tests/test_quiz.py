"""The quiz: data in, accessible HTML out."""

from html.parser import HTMLParser

import pytest

from posenc.quiz import Question, Quiz

QUIZ = Quiz(
    "order",
    [
        Question("1 < 2?", ("Yes", True, "It is."), ("No", False, 'Say "less".')),
        Question("Which?", ("a", False, "Not a."), ("b", True, "b."), ("c", False, "Not c.")),
    ],
)


class Tags(HTMLParser):
    """Collect start tags with their attributes."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def tags(name):
    parser = Tags()
    parser.feed(QUIZ._repr_html_())
    return [attributes for tag, attributes in parser.found if tag == name]


def test_each_question_is_a_group_of_labelled_radio_buttons_with_live_feedback():
    assert len(tags("fieldset")) == len(tags("legend")) == 2
    assert len(tags("label")) == len(tags("input")) == 5
    assert {attributes["type"] for attributes in tags("input")} == {"radio"}
    assert [a["name"] for a in tags("input")] == ["quiz-order-1"] * 2 + ["quiz-order-2"] * 3
    assert sum(a.get("aria-live") == "polite" for a in tags("p")) == 2


def test_carries_what_is_right_and_why():
    assert [a["data-right"] for a in tags("input")] == ["true", "false", "false", "true", "false"]
    assert tags("input")[1]["data-why"] == 'Say "less".'


def test_text_is_escaped():
    assert "1 &lt; 2?" in QUIZ._repr_html_()


def test_text_form_counts_the_questions():
    assert repr(QUIZ) == "Quiz 'order' with 2 questions"


@pytest.mark.parametrize(
    "choices",
    [
        [("Yes", True, "It is.")],
        [("Yes", True, "It is."), ("No", True, "It is too.")],
        [("Yes", False, "It is not."), ("No", False, "Nor that.")],
    ],
)
def test_a_question_has_exactly_one_right_choice(choices):
    with pytest.raises(ValueError, match="one of at least two choices must be right"):
        Question("?", *choices)


def test_every_choice_explains_itself():
    with pytest.raises(ValueError, match="every choice needs its feedback"):
        Question("?", ("Yes", True, "It is."), ("No", False, ""))
