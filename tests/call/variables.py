"""A workflow that tells a context variable of its caller."""

from contextvars import ContextVar

from rehydrate import CheckpointStorage, Workflow, WorkflowBuilder, executor

TENANT = ContextVar("tenant", default="nobody")


def tell_tenant(store: CheckpointStorage | None) -> Workflow:
    """Make a workflow of one executor that returns the tenant, and sets it to something else for itself."""

    @executor(id="tell")
    async def tell(message: str) -> str:
        tenant = TENANT.get()
        TENANT.set("changed by a handler")
        return tenant

    return WorkflowBuilder(name="tenant", start_executor=tell, checkpoint_storage=store).build()
