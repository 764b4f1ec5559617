"""A Dask cluster trains what this process trains, to the bit, even if it loses a worker; or a sentence says why not."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from cases import every
from clusters import scheduler_and_worker
from joblib.parallel import get_active_backend

import textcat
from textcat import cli
from textcat.base.cluster import connected, on_cluster
from textcat.base.errors import TextcatError
from textcat.margin.solve import Workers
from textcat.training.shortlist import train_shortlist

SHORTLIST = ["--recipe", "many-topics", "--set", "topics.shortlist=10"]


def rows_and_labels(n=2000, d=300, topics=8):
    random = np.random.default_rng(0)
    X = sp.random(n, d, 0.05, format="csr", dtype=np.float32, random_state=1)
    return X, sp.csr_matrix(random.random((n, topics)) < 0.2, dtype=np.int8)


def learner(**settings):
    # Labels by chance cannot be learnt without λ: this takes all its epochs.
    return textcat.PAUM(tau_neg=1, tau_pos=50, lambda_=0.0, n_jobs=-1, **settings)


def facts(learner):
    return learner.coef_.tobytes(), learner.intercept_.tobytes(), learner.n_updates_.tolist(), learner.margin_.tobytes()


def facts_of_listed(rows, labels, **settings):
    """Return what comes of training with a shortlist on rows of which the last are topics' names."""
    n_topics = labels.shape[1]
    names = sp.csr_matrix((n_topics, rows.shape[1]), dtype=np.float32)
    settings = {"tau_neg": 1, "tau_pos": 50, "lambda_": 0.0, **settings}
    options = {"size": n_topics // 2, "groups": np.arange(rows.shape[0] - n_topics), "n_jobs": -1}
    trained = train_shortlist(rows, labels, names, textcat.PAUM(**settings), **options)
    scorer, weights = trained.scorer, trained.scorer.weights
    arrays = weights.indptr, weights.indices, weights.data, scorer.bias, scorer.shortlist.centroids.data
    same_bytes = [array.tobytes() for array in (*arrays, trained.converged)]
    return same_bytes, trained.facts, trained.evidence


@contextlib.contextmanager
def killing_one(cluster):
    """Kill a worker as soon as both have something to do; yield a function that says if that is still to come."""
    killed = []

    def kill_one():
        with connected(cluster.scheduler_address) as connection:
            client = connection.client
            while not killed:
                busy = [worker for worker, tasks in client.processing().items() if tasks]
                if len(busy) == 2:
                    pid = client.run(os.getpid, workers=busy[:1])[busy[0]]
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                time.sleep(0.01)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    yield killer.is_alive
    killer.join()
    assert len(killed) == 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestOfACluster:
    def test_training_on_a_cluster_is_training_here_to_the_bit(self, cluster, tmp_path):
        X, Y = rows_and_labels()
        expected = facts(learner(max_epochs=20).fit(X, Y))
        with on_cluster(cluster.scheduler_address):
            assert facts(learner(max_epochs=20).fit(X, Y)) == expected
            assert facts(learner(max_epochs=20).fit(textcat.write_rows(tmp_path / "rows", [X]), Y)) == expected
            seeded = learner(max_epochs=20, random_state=1).fit(X, Y)
        assert facts(seeded) == facts(learner(max_epochs=20, random_state=1).fit(X, Y)) != expected

    def test_rows_that_a_worker_does_not_see_are_told_of(self, cluster, tmp_path):
        X, Y = rows_and_labels()
        rows = textcat.write_rows(tmp_path / "rows", [X])
        rows.folder = tmp_path / "only here"
        with (
            pytest.raises(TextcatError, match=r"cannot open the rows in .*only here.*: every machine must see them"),
            on_cluster(cluster.scheduler_address),
        ):
            learner().fit(rows, Y)

    def test_a_worker_that_is_killed_takes_nothing_with_it(self, cluster):
        X, Y = rows_and_labels()
        expected = facts(learner(max_epochs=1000).fit(X, Y))
        with killing_one(cluster) as to_come, on_cluster(cluster.scheduler_address):
            while to_come():  # a busy machine may have trained before it has looked
                assert facts(learner(max_epochs=1000).fit(X, Y)) == expected

    def test_training_with_a_shortlist_is_training_here_to_the_bit(self, cluster, tmp_path):
        X, Y = rows_and_labels(n=1000, topics=20)
        expected = facts_of_listed(X, Y, max_epochs=20)
        double = X.astype(np.float64)
        stored, of_double = (textcat.write_rows(tmp_path / str(each.dtype), [each]) for each in (X, double))
        with on_cluster(cluster.scheduler_address):
            for rows in (X, double, stored, of_double):
                assert facts_of_listed(rows, Y, max_epochs=20) == expected
            with pytest.raises(TextcatError, match="The weights of a topic overflowed"):
                facts_of_listed(X, Y, eta=1e39)
            stored.folder = tmp_path / "only here"
            with pytest.raises(TextcatError, match=r"cannot open the rows in .*only here.*: every machine must see"):
                facts_of_listed(stored, Y)

    def test_with_a_shortlist_too_a_worker_that_is_killed_takes_nothing_with_it(self, cluster):
        X, Y = rows_and_labels(n=1000, topics=20)
        expected = facts_of_listed(X, Y, max_epochs=200)
        with killing_one(cluster) as to_come, on_cluster(cluster.scheduler_address):
            while to_come():
                assert facts_of_listed(X, Y, max_epochs=200) == expected

    @pytest.mark.parametrize(
        "more", [["--recipe", "paum"], [*SHORTLIST, "--rows-dir", "rows"]], ids=["paum", "many-topics, stored"]
    )
    def test_the_command_gives_the_same_model(self, more, cluster, newswire_part, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        for name, where in (("here", []), ("there", ["--backend", "dask", "--scheduler", cluster.scheduler_address])):
            monkeypatch.setattr(sys, "argv", ["textcat", "train", str(newswire_part), "--out", name, *more, *where])
            with contextlib.suppress(SystemExit):
                cli.main()
        assert capsys.readouterr().err == ""
        names = sorted(path.name for path in (tmp_path / "here").glob("*.npy"))
        assert {"bias.npy", "thresholds.npy", "calibration.npy"} < set(names)
        for name in names:
            assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()

    def test_a_worker_with_another_version_is_told_of(self, cluster, monkeypatch):
        monkeypatch.setattr("textcat.base.cluster.__version__", "99.0")
        with (
            pytest.raises(TextcatError, match=r"The worker .* has textcat .*: install textcat-margin 99\.0 there"),
            connected(cluster.scheduler_address),
        ):
            pass

    def test_a_scheduler_without_workers_is_told_of(self, cluster):
        import distributed

        with (
            distributed.LocalCluster(
                n_workers=0, processes=False, dashboard_address=None, silence_logs=50, protocol="tcp"
            ) as empty,
            pytest.raises(TextcatError, match="has no worker: start one"),
            connected(empty.scheduler_address),
        ):
            pass

    def test_a_connection_within_a_cluster_that_closes_is_reported_in_a_sentence(self, cluster):
        from distributed.comm import CommClosedError

        address = cluster.scheduler_address
        closed = CommClosedError("in <TCP (closed) local=tcp://a remote=tcp://b>: Stream is closed")
        told = rf"within the Dask cluster at {address} was closed: check .* same command"
        with pytest.raises(TextcatError, match=told), connected(address):
            raise closed

    def test_workers_that_keep_dying_are_told_of(self, cluster):
        with (
            pytest.raises(TextcatError, match=r"The workers of the Dask cluster at .* were lost"),
            on_cluster(cluster.scheduler_address),
        ):
            get_active_backend()[0].client.submit(os._exit, 1).result()


def fit_for_long(then):
    """Train for ever on a cluster, and call a function meanwhile."""
    X, Y = rows_and_labels()
    threading.Timer(1, then).start()
    learner(max_epochs=10**8).fit(X, Y)


def test_training_ends_when_the_scheduler_is_lost(monkeypatch):
    monkeypatch.setattr("textcat.base.cluster.SECONDS", 3)
    with (
        scheduler_and_worker() as (address, scheduler, _),
        pytest.raises(TextcatError, match=rf"The Dask scheduler at {address} no longer answers: .*same command again"),
        on_cluster(address),
    ):
        fit_for_long(scheduler.kill)


def test_training_ends_when_all_workers_are_lost():
    with (
        scheduler_and_worker() as (address, _, worker),
        pytest.raises(TextcatError, match=rf"The workers of the Dask cluster at {address} were lost"),
        on_cluster(address),
    ):
        fit_for_long(worker.kill)  # and with it the rows


def wait_in_order(then):
    """Run tasks one after the other, and call a function when the first one is done."""
    for _ in Workers().in_order(time.sleep, [0, 1000]):
        then()


def test_tasks_end_when_there_is_no_worker_for_long(monkeypatch):
    monkeypatch.setattr("textcat.base.cluster.WITHOUT_WORKER", 2)
    with (
        scheduler_and_worker() as (address, _, worker),
        pytest.raises(TextcatError, match=rf"{address} has had no worker for 2 seconds: start one .*same command"),
        on_cluster(address),
    ):
        wait_in_order(worker.kill)


def test_tasks_end_when_the_scheduler_is_frozen(monkeypatch):
    monkeypatch.setattr("textcat.base.cluster.SECONDS", 3)
    with (
        scheduler_and_worker() as (address, scheduler, _),
        pytest.raises(TextcatError, match="no longer answers"),
        on_cluster(address),
    ):
        wait_in_order(partial(os.kill, scheduler.pid, signal.SIGSTOP))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_cluster_of_one_thread_trains_to_the_bit_and_errors_there_stay_what_they_are():
    X, Y = rows_and_labels(n=200)
    expected = facts(learner(max_epochs=20).fit(X, Y))
    with scheduler_and_worker() as (address, *_):
        with on_cluster(address):
            assert facts(learner(max_epochs=20).fit(X, Y)) == expected
        with pytest.raises(ZeroDivisionError), on_cluster(address):
            get_active_backend()[0].client.submit(divmod, 1, 0).result()


def test_no_scheduler_at_the_address_is_told_of():
    pytest.importorskip("distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    refused = rf"No Dask scheduler answers at {address} \(.*refused.*\): check the address"
    with pytest.raises(TextcatError, match=refused), connected(address):
        pass
    with pytest.raises(TextcatError, match="No Dask scheduler answers at nonsense"), connected("nonsense"):
        pass


@every("reply", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(64), b"\xff" * 64])
def test_a_server_that_is_no_scheduler_is_refused_in_a_sentence(reply):
    def serve():
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                client.sendall(reply)
                client.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        threading.Thread(target=serve, daemon=True).start()
        refused = rf"No Dask scheduler answers at {address} \([a-z ,]+\): check the address\.$"
        with pytest.raises(TextcatError, match=refused), connected(address):
            pass


def test_a_scheduler_that_is_frozen_from_the_start_is_told_of(monkeypatch):
    monkeypatch.setattr("textcat.base.cluster.SECONDS", 2)
    with scheduler_and_worker() as (address, scheduler, _):
        os.kill(scheduler.pid, signal.SIGSTOP)
        with pytest.raises(TextcatError, match="No Dask scheduler answers at"), connected(address):
            pass


def test_without_dask_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(TextcatError, match=r"pip install 'textcat-margin\[cluster\]'"),
        on_cluster("tcp://127.0.0.1:8786"),
    ):
        pass


def test_without_an_address_nothing_changes():
    X, Y = rows_and_labels(n=50)
    with on_cluster(""):
        found = facts(textcat.PAUM().fit(X, Y))
    assert found == facts(textcat.PAUM().fit(X, Y))
