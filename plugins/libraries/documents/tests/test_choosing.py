from __future__ import annotations

import math
import threading
import time
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.retrieval import Block, Chunk, Corpus, Document, Hit
from jackfield_counting.estimating import estimate_tokens
from jackfield_documents import (
    IndexCache,
    Kept,
    best_within,
    choose,
    corpus_of,
    fits_whole,
    front_part,
    fuse,
    passages,
    score_as_json,
)


def chunk(number: int, source: str = "a", tokens: int = 10) -> Chunk:
    return Chunk(f"{source}{number}", source, "x" * tokens, number, tokens)


def ranking(*numbers: int, score: float = 1.0) -> list[Hit]:
    return [Hit(chunk(number), score) for number in numbers]


def ids(hits: list[Hit]) -> list[int]:
    return [hit.chunk.index for hit in hits]


rankings = st.dictionaries(
    st.sampled_from(["keyword", "vector", "front"]),
    st.lists(st.integers(0, 9), unique=True).map(lambda numbers: ranking(*numbers)),
)


# --- fusing ---


@given(st.lists(st.integers(0, 50), unique=True))
def test_a_single_ranking_keeps_its_order(numbers: list[int]) -> None:
    assert ids(fuse({"keyword": ranking(*numbers)})) == numbers


@given(rankings)
def test_every_chunk_comes_out_once(given_rankings: dict[str, list[Hit]]) -> None:
    fused = fuse(given_rankings)
    assert len(set(ids(fused))) == len(fused)
    assert set(ids(fused)) == {number for hits in given_rankings.values() for number in ids(hits)}


@given(rankings)
def test_the_order_of_the_searchers_does_not_matter(given_rankings: dict[str, list[Hit]]) -> None:
    assert fuse(given_rankings) == fuse(dict(reversed(given_rankings.items())))


@given(rankings)
def test_a_hit_says_at_which_place_which_searcher_had_it(given_rankings: dict[str, list[Hit]]) -> None:
    for hit in fuse(given_rankings):
        for name, rank in hit.ranks.items():
            assert given_rankings[name][rank - 1].chunk == hit.chunk


@given(rankings, st.floats(0.1, 5))
def test_equal_weights_are_no_weights(given_rankings: dict[str, list[Hit]], weight: float) -> None:
    weighted = fuse(given_rankings, weights=dict.fromkeys(given_rankings, weight))
    assert {hit.chunk.id: pytest.approx(hit.score / weight) for hit in weighted} == {
        hit.chunk.id: hit.score for hit in fuse(given_rankings)
    }


def test_the_places_that_a_searcher_tells_of_others_hide_none_that_they_have_here() -> None:
    for inner, (one, two) in product((1, 7), (("keyword", "reranked"), ("reranked", "keyword"))):
        reranked = [Hit(chunk(1), 0.9, {"keyword": inner, "deep": 3, "reranked": 1})]
        given_rankings = {name: {"keyword": ranking(2, 1), "reranked": reranked}[name] for name in (one, two)}
        found = {hit.chunk.index: dict(hit.ranks) for hit in fuse(given_rankings)}
        assert found == {1: {"keyword": 2, "reranked": 1, "deep": 3}, 2: {"keyword": 1}}


def test_what_both_searchers_find_comes_before_what_one_finds() -> None:
    assert ids(fuse({"keyword": ranking(1, 2), "vector": ranking(3, 2)}))[0] == 2


def test_a_heavier_searcher_wins_and_a_weightless_one_is_not_heard() -> None:
    both = {"keyword": ranking(1), "vector": ranking(2)}
    assert ids(fuse(both, weights={"vector": 2})) == [2, 1]
    assert ids(fuse(both, weights={"vector": 0})) == [1]


@pytest.mark.parametrize("order", [("keyword", "front"), ("front", "keyword")])
def test_a_chunk_scored_as_infinite_stands_first(order: tuple[str, str]) -> None:
    rankings = {"keyword": ranking(1, 2, 3), "front": ranking(3, score=math.inf)}
    fused = fuse({name: rankings[name] for name in order})
    assert ids(fused) == [3, 1, 2]
    assert fused[0].score == math.inf


@pytest.mark.parametrize(("score", "shown"), [(0.25, 0.25), (math.inf, "first")])
def test_every_score_can_be_written_as_json(score: float, shown: object) -> None:
    assert score_as_json(score) == shown


def test_the_scores_by_ranks_are_those_of_the_formula() -> None:
    rankings = {"keyword": ranking(1, 2), "vector": ranking(1)}
    [first, second] = fuse(rankings, weights={"keyword": 0.5}, k=10, by="ranks")
    assert first.score == pytest.approx(0.5 / 11 + 1 / 11)
    assert second.score == pytest.approx(0.5 / 12)


def scored(*scores: float, first: int = 0) -> list[Hit]:
    return [Hit(chunk(first + number), score) for number, score in enumerate(scores)]


def test_a_clear_preference_outweighs_one_among_equals() -> None:
    clear = scored(9.0, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, first=0)
    vague = scored(0.71, 0.70, 0.69, 0.68, 0.67, 0.66, 0.65, 0.64, 0.63, 0.62, first=100)
    assert fuse({"a": clear, "b": vague})[0].chunk == clear[0].chunk
    assert fuse({"a": vague, "b": clear})[0].chunk == clear[0].chunk


def test_hits_after_the_hundredth_neither_change_the_others_nor_count_as_good() -> None:
    best = scored(*(300.0 - number for number in range(100)))
    alike = scored(*[1.0] * 100)
    for hits in (best, alike):
        tail = scored(*[hits[-1].score - 200 * (hits is best)] * 20, first=100)
        alone, found = fuse({"a": hits}), fuse({"a": [*hits, *tail]})
        assert [hit.score for hit in found[:100]] == [hit.score for hit in alone]
        assert all(hit.score < 0.1 for hit in found[100:])


numbers = st.lists(st.integers(-100, 100), min_size=1, max_size=30).map(lambda some: sorted(some, reverse=True))


@given(numbers, numbers, st.integers(0, 30), st.sampled_from([0.01, 0.5, 3.0, 1000.0]), st.integers(-100, 100))
def test_the_scale_of_a_searchers_scores_does_not_matter(
    one: list[int], two: list[int], shared: int, scale: float, shift: int
) -> None:
    first, second = scored(*one), scored(*two, first=shared)
    other = [Hit(hit.chunk, hit.score * scale + shift) for hit in second]
    before = {hit.chunk.id: hit.score for hit in fuse({"a": first, "b": second})}
    after = {hit.chunk.id: hit.score for hit in fuse({"a": first, "b": other})}
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("weights", [{"keyword": -1.0}, {"keyword": math.inf}, {"keyword": math.nan}])
def test_weights_that_make_no_sense_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="weight of 'keyword'"):
        fuse({"keyword": ranking(1)}, weights=weights)


def test_a_k_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="k must be at least 1"):
        fuse({}, k=0)


# --- the budget ---


def corpus(*tokens: int, sources: int = 1) -> Corpus:
    return Corpus(tuple(chunk(n, f"file{n % sources}", size) for n, size in enumerate(tokens)))


@given(
    st.lists(st.integers(1, 30), max_size=12),
    st.integers(0, 100),
    st.randoms(use_true_random=False),
    st.integers(1, 3),
    st.booleans(),
)
def test_what_is_chosen_never_exceeds_the_budget(
    tokens: list[int], budget: int, random: object, sources: int, with_hits: bool
) -> None:
    found = list(corpus(*tokens, sources=sources).chunks)
    random.shuffle(found)  # type: ignore[attr-defined]
    hits = [Hit(one, 1.0) for one in found] if with_hits else []
    chosen = choose(corpus(*tokens, sources=sources), hits, max_tokens=budget, count_tokens=len)
    assert sum(len(one.text) for one in chosen) <= budget
    assert [one.tokens for one in chosen] == [len(one.text) for one in chosen]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(0, 200))
def test_everything_is_shown_if_it_fits(tokens: list[int], spare: int) -> None:
    everything = corpus(*tokens)
    assert choose(everything, [], max_tokens=sum(tokens) + spare, count_tokens=len) == list(everything.chunks)


def test_who_wants_the_hits_only_gets_no_more_even_if_everything_fits() -> None:
    everything = corpus(10, 10, 10)
    hit = Hit(everything.chunks[1], 1.0)
    assert choose(everything, [hit], max_tokens=100, all_if_it_fits=False, count_tokens=len) == [hit.chunk]


def test_whole_chunks_are_taken_and_the_first_that_does_not_fit_is_cut() -> None:
    taken = best_within(ranking(5, 1, 3), max_tokens=25, count_tokens=len)
    assert [(one.index, one.tokens) for one in taken] == [(5, 10), (1, 10), (3, 5)]


def test_after_the_one_that_is_cut_nothing_more_is_taken() -> None:
    hits = [Hit(chunk(0, tokens=30), 2.0), Hit(chunk(1, tokens=5), 1.0)]
    assert [one.index for one in best_within(hits, max_tokens=20, count_tokens=len)] == [0]


def test_what_is_chosen_stands_in_document_order() -> None:
    everything = corpus(*[10] * 10)
    hits = [Hit(everything.chunks[n], 1.0) for n in (7, 2, 5)]
    assert [one.index for one in choose(everything, hits, max_tokens=30, count_tokens=len)] == [2, 5, 7]


def test_without_hits_every_document_shows_an_equal_share_of_its_front() -> None:
    front = front_part(corpus(*[10] * 8, sources=2), max_tokens=30, count_tokens=len)
    assert [(one.source, one.index, one.tokens) for one in front] == [
        ("file0", 0, 10),
        ("file0", 2, 5),
        ("file1", 1, 10),
        ("file1", 3, 5),
    ]


def test_a_page_line_alone_is_not_shown() -> None:
    long = Chunk("a", "a", "[page: 1]\n" + "x" * 90, 0, 100, page=1)
    assert best_within([Hit(long, 1.0)], max_tokens=10, count_tokens=len) == []
    assert [one.text for one in best_within([Hit(long, 1.0)], max_tokens=12, count_tokens=len)] == ["[page: 1]\nxx"]


def test_passages_are_grouped_by_source_in_the_order_of_the_corpus() -> None:
    assert passages([chunk(0, "b", 2), chunk(4, "b", 1), chunk(1, "a", 3)]) == [
        {"url": "b", "text": ["xx", "x"]},
        {"url": "a", "text": ["xxx"]},
    ]


def test_neighbours_do_not_show_the_same_sentence_twice() -> None:
    text = " ".join(f"Sentence number {n} says something about cats and dogs." for n in range(40))
    everything = corpus_of([Document("a", (Block(text, page=1),), "h")], size_tokens=60)
    assert any(one.overlap for one in everything.chunks)
    [passage] = passages(everything.chunks)
    shown = "".join(part.removeprefix("[page: 1]\n") for part in passage["text"])
    assert shown == text


def test_what_a_cut_chunk_no_longer_shows_is_shown_by_its_neighbour() -> None:
    text = " ".join(f"Sentence number {n} says something about cats and dogs." for n in range(40))
    first, second, *_ = corpus_of([Document("a", (Block(text),), "h")], size_tokens=60).chunks
    [cut] = best_within([Hit(first, 1.0)], max_tokens=first.tokens - 20, count_tokens=estimate_tokens)
    assert passages([cut, second])[0]["text"][1] == second.text


def test_a_document_that_fits_is_shown_whole_although_its_chunks_repeat_each_other() -> None:
    text = " ".join(f"Sentence number {n} says something about cats and dogs." for n in range(40))
    everything = corpus_of([Document("a", (Block(text, page=1),), "h")], size_tokens=60)
    room = estimate_tokens(f"[page: 1]\n{text}")
    assert sum(one.tokens for one in everything.chunks) > room
    [passage] = passages(choose(everything, [], max_tokens=room))
    assert passage["text"] == [f"[page: 1]\n{text}"]


def test_what_a_short_document_does_not_need_is_shown_of_a_long_one() -> None:
    short, long = [chunk(0, "short", 5)], [chunk(n, "long", 10) for n in range(9)]
    for both in ([*short, *long], [*long, *short]):
        front = front_part(Corpus(tuple(both)), max_tokens=45, count_tokens=len)
        assert sum(one.tokens for one in front) == 45
        assert sum(one.tokens for one in front if one.source == "short") == 5


def test_a_chunk_cut_after_a_word_counts_the_tokens_that_it_shows() -> None:
    words = Chunk("a0", "a", "seven letters " * 20, 0, 280)
    [cut] = best_within([Hit(words, 1.0)], max_tokens=105, count_tokens=len)
    assert cut.tokens == len(cut.text) < 105


def test_a_document_is_counted_as_the_caller_counts() -> None:
    text = " ".join(f"Sentence number {n} says something." for n in range(20))
    everything = corpus_of([Document("a", (Block(text),), "h")], size_tokens=200, count_tokens=len)
    assert sum(one.tokens for one in everything.chunks) > len(text)
    for room, whole in ((len(text), True), (len(text) - 1, False)):
        assert fits_whole(everything, max_tokens=room, count_tokens=len) is whole
        chosen = choose(everything, [], max_tokens=room, count_tokens=len)
        assert (chosen == list(everything.chunks)) is whole


def test_a_mark_is_before_the_text_that_a_chunk_repeats() -> None:
    blocks = (Block("One two three. Four five six. Seven eight nine."),)
    chunks = corpus_of([Document("a", blocks, "h")], size_tokens=34, overlap_chars=15, count_tokens=len).chunks
    assert [one.overlap > 0 for one in chunks] == [False, True]
    [passage] = passages(chunks, mark=lambda one: f"[{one.index}]")
    first, second = (one.text for one in chunks)
    assert passage["text"] == [f"[0]\n{first[: -chunks[1].overlap]}\n[1]\n{second}"]
    table = Block("| h |\n|---|\n" + "\n".join(f"| {n} |" for n in range(9)), kind="table")
    chunks = corpus_of([Document("a", (table,), "h")], size_tokens=45, overlap_chars=0, count_tokens=len).chunks
    [passage] = passages(chunks[:2], mark=lambda one: f"[{one.index}]")
    own = chunks[1].text[chunks[1].overlap :]
    assert passage["text"] == [f"[0]\n{chunks[0].text}[1]\n{own}"], "a header that is repeated is shown once"


# --- keeping ---


def test_a_value_is_made_once_however_many_ask_at_once() -> None:
    kept: Kept[str, int] = Kept(4)
    made: list[int] = []
    gate = threading.Barrier(8)

    def ask() -> None:
        gate.wait()
        kept.get("key", lambda: made.append(1) or time.sleep(0.02) or 7)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert made == [1]


def test_a_failure_is_not_kept_and_the_next_one_tries_for_itself() -> None:
    kept: Kept[str, int] = Kept(4)
    with pytest.raises(ZeroDivisionError):
        kept.get("key", lambda: 1 // 0)
    assert kept.get("key", lambda: 5) == 5


def test_the_value_used_longest_ago_is_dropped_when_there_is_no_room() -> None:
    kept: Kept[str, str] = Kept(10, size_of=len)
    kept.get("a", lambda: "aaaa")
    kept.get("b", lambda: "bbbb")
    kept.get("a", lambda: "other")
    kept.get("c", lambda: "cccc")
    assert [kept.get(key, lambda: "new") for key in "ac"] == ["aaaa", "cccc"]
    assert kept.get("b", lambda: "new") == "new"


def test_an_index_is_kept_by_what_the_corpus_says_and_not_by_which_object_it_is() -> None:
    cache: IndexCache[int] = IndexCache()
    built: list[int] = []
    for _ in range(3):
        cache.get(corpus(1, 2, 3), lambda chunks: built.append(len(chunks)) or len(chunks))
    cache.get(corpus(1, 2), lambda chunks: built.append(len(chunks)) or len(chunks))
    assert built == [3, 2]


# --- at the limit ---


@pytest.mark.parametrize(("max_tokens", "whole"), [(20, True), (19, False)])
def test_a_corpus_that_takes_exactly_the_tokens_fits_without_being_counted(max_tokens: int, whole: bool) -> None:
    corpus = Corpus((chunk(0), chunk(1)))
    assert fits_whole(corpus, max_tokens=max_tokens, count_tokens=lambda _: 10**9) is whole


@pytest.mark.parametrize(
    ("max_tokens", "lengths"), [(9, [9]), (10, [10]), (11, [10, 1]), (20, [10, 10]), (30, [10, 10, 10]), (0, [])]
)
def test_only_the_chunk_that_does_not_fit_is_truncated(max_tokens: int, lengths: list[int]) -> None:
    chosen = best_within(ranking(2, 0, 1), max_tokens=max_tokens, count_tokens=len)
    assert [(one.tokens, len(one.text), one.is_cut) for one in chosen] == [
        (length, length, length < 10) for length in lengths
    ]
    assert [one.index for one in chosen] == [2, 0, 1][: len(lengths)]


def test_a_truncated_chunk_ends_with_no_page_line() -> None:
    text = "[page: 1]\nabc\n[page: 2]\ndef"
    paged = Chunk("a0", "a", text, 0, len(text), page=1)
    ends = [best_within([Hit(paged, 1.0)], max_tokens=size, count_tokens=len) for size in range(len(text) + 1)]
    shown = {one.text.removeprefix("[page: 1]\n") for chosen in ends for one in chosen}
    assert {"a", "ab", "abc", text[10:]} <= shown
    assert [own for own in shown if own.rstrip().endswith(("[", "[p", "[pa", "[page", "[page:", "2", "]"))] == []
    unpaged = Chunk("a0", "a", text[10:], 0, 99)
    assert "abc\n[pa" in {best_within([Hit(unpaged, 1.0)], max_tokens=7, count_tokens=len)[0].text}


def test_passages_name_the_file_in_an_archive_and_join_only_neighbours() -> None:
    def of(number: int, part: str, *, is_cut: bool = False) -> Chunk:
        return Chunk(f"{part}{number}", "a.zip", f"{number}", number, 1, part=part, joint="+", is_cut=is_cut)

    chunks = [of(0, "x"), of(1, "x", is_cut=True), of(2, "x"), of(4, "x"), of(5, "y"), of(6, "")]
    assert passages(chunks) == [
        {"url": "a.zip", "text": ["0+1", "2", "4"], "part": "x"},
        {"url": "a.zip", "text": ["5"], "part": "y"},
        {"url": "a.zip", "text": ["6"]},
    ]


def test_the_best_rank_that_is_told_of_another_searcher_counts() -> None:
    for told in ((3, 1), (1, 3)):
        rankings = {name: [Hit(chunk(0), 1.0, {"words": rank})] for name, rank in zip("ab", told, strict=True)}
        assert fuse(rankings)[0].ranks == {"a": 1, "b": 1, "words": 1}


def test_a_hit_far_below_the_best_ones_counts_by_its_rank_alone() -> None:
    hits = [Hit(chunk(number), 200.0 - number) for number in range(100)]
    last = fuse({"a": [*hits, Hit(chunk(100), 1.0)]})[-1]
    assert (last.chunk.index, last.score) == (100, pytest.approx(1 / (60 + 101)))


def test_a_hit_of_another_corpus_comes_last() -> None:
    whole = corpus(10, 10, 10)
    other = Hit(Chunk("x", "other", "x", 0, 10), 9.0)
    hits = [other, *(Hit(chunk, 1.0) for chunk in reversed(whole.chunks))]
    chosen = choose(whole, hits, max_tokens=100, all_if_it_fits=False)
    assert [chunk.id for chunk in chosen] == [*(chunk.id for chunk in whole.chunks), "x"]


def test_scores_decide_unless_ranks_are_asked_for() -> None:
    rankings = {"a": scored(9.0, 1.0, 0.9), "b": scored(0.3, 0.2, 0.1, first=1)}
    assert fuse(rankings) == fuse(rankings, by="scores", k=60)
    assert [hit.score for hit in fuse(rankings)] != [hit.score for hit in fuse(rankings, by="ranks")]
