"""Tag inputs by a model, and write the tags to a stream."""

from collections.abc import Callable
from contextlib import closing
from typing import BinaryIO

from textcat.base.errors import TextcatError
from textcat.reading import Rejection, read_batches
from textcat.runs.inputs import AGAIN, total_size
from textcat.runs.progress import RunState, ShowProgress
from textcat.runs.results import Counts
from textcat.tagging.output import file_format
from textcat.tagging.planning import TaggingPlan
from textcat.tagging.summary import Summary
from textcat.tagging.work import Tally, log_plan, tagged_batches, workers_of


def tag_to_stream(
    plan: TaggingPlan,
    stream: BinaryIO,
    *,
    on_rejection: Callable[[Rejection], None],
    progress: ShowProgress | None = None,
) -> Summary:
    """Tag the inputs of a plan, and write rows to a stream, which is flushed after each batch; return the summary.

    `on_rejection` is called with each rejection, and `progress` with the progress after each batch. A TextcatError is
    also raised if the format of the output is Parquet.
    """
    plan = plan._replace(start_over=AGAIN)
    if plan.job.output.to == "parquet":
        raise TextcatError("Parquet cannot be written to a stream: write it to a folder with --out.")
    if plan.job.groups is not None:
        from textcat.tagging.grouped_files import check_grouped_files  # imported here, because it loads much

        check_grouped_files(plan.job.output.duplicates, plan.sources, {})
    log_plan(plan, "standard output")
    form, n_bytes = file_format(plan.job.output), total_size(plan.sources)
    tally = Tally(plan, RunState(Counts(), sources=plan.sources), progress)
    stream.write(form.begin())
    batches = read_batches(plan.sources, plan.job.input)
    with workers_of(plan, n_bytes) as workers, closing(tagged_batches(plan, batches, workers, tally)) as results:
        for _, tagged in results:
            stream.write(b"".join([*map(form.add, tagged.rows), form.flush()]))
            stream.flush()
            for rejection in tagged.rejections:
                on_rejection(rejection)
    stream.write(form.end())
    stream.flush()
    tally.run.warn_of_changes(plan.job.input, plan.start_over)
    return tally.summary(0)
