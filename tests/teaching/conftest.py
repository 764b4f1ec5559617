"""A small pool, and a session over it."""

import pytest
from teaching_work import small_pool

from textcat.teaching.session import Session


@pytest.fixture(scope="module")
def pool():
    return small_pool()


@pytest.fixture
def session(pool):
    with Session.create(None, pool) as session:
        session.add_topic("strike", "workers on strike for wages", random_share=0)
        yield session
