import numpy as np
import pytest

from rag_reliability.records import Document, Pool, Ranking


def test_a_ranking_is_read_only_and_its_own_copy():
    docids = np.array([[1, 0]])
    ranking = Ranking(["q"], docids, np.array([[0.5, 0.5]]))
    docids[0, 0] = 7
    assert ranking.docids.tolist() == [[1, 0]]
    with pytest.raises(ValueError, match="read-only"):
        ranking.scores[0, 0] = 1.0


@pytest.mark.parametrize(
    ("docids", "scores", "says"),
    [
        ([[0, 0]], [[2.0, 1.0]], "twice"),
        ([[0, 1]], [[1.0, 2.0]], "non-increasing"),
        ([[0, 1]], [[1.0, float("nan")]], "finite"),
        ([[0, -1]], [[1.0, 0.5]], ">= 0"),
        ([[0, 1]], [[1.0]], "equal"),
    ],
)
def test_a_ranking_that_is_none_is_refused(docids, scores, says):
    with pytest.raises(ValueError, match=says):
        Ranking(["q"], np.array(docids), np.array(scores))


def test_a_ranking_needs_one_row_a_topic():
    with pytest.raises(ValueError, match="one row for each qid"):
        Ranking(["q", "q"], np.array([[0], [1]]), np.array([[1.0], [1.0]]))


def test_a_pool_needs_a_similarity_for_each_candidate():
    with pytest.raises(ValueError, match="equal"):
        Pool(np.zeros((2, 3)), np.zeros((2, 2)))


def test_content_is_title_and_text():
    assert Document("d", "Title", "Text.", "blog").content == "Title\nText."
    assert Document("d", "", "Text.", "blog").content == "Text."
