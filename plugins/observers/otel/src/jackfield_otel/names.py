"""Names from OpenTelemetry's semantic conventions for generative AI, as of November 2026.

The names are defined here, because the official package marks them as deprecated or private.
"""

from __future__ import annotations

from collections.abc import Mapping

SCOPE = "jackfield"
"""The name of the tracer, meter and logger."""

# --- operations ---
INVOKE_AGENT, CHAT, EXECUTE_TOOL, RETRIEVAL = "invoke_agent", "chat", "execute_tool", "retrieval"
EMBEDDINGS = "embeddings"

# --- attributes ---
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
AGENT_NAME = "gen_ai.agent.name"
AGENT_DESCRIPTION = "gen_ai.agent.description"
REQUEST_MODEL = "gen_ai.request.model"
TEMPERATURE = "gen_ai.request.temperature"
TOP_P = "gen_ai.request.top_p"
TOP_K = "gen_ai.request.top_k"
MAX_TOKENS = "gen_ai.request.max_tokens"
SEED = "gen_ai.request.seed"
STOP_SEQUENCES = "gen_ai.request.stop_sequences"
FREQUENCY_PENALTY = "gen_ai.request.frequency_penalty"
PRESENCE_PENALTY = "gen_ai.request.presence_penalty"
REASONING_LEVEL = "gen_ai.request.reasoning.level"
STREAM = "gen_ai.request.stream"
OUTPUT_TYPE = "gen_ai.output.type"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH_REASONS = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_write.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - of a model
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
TOOL_DEFINITIONS = "gen_ai.tool.definitions"
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
DATA_SOURCE = "gen_ai.data_source.id"
QUERY_TEXT = "gen_ai.retrieval.query.text"
DIMENSION = "gen_ai.embeddings.dimension.count"
ERROR_TYPE = "error.type"
SERVER_ADDRESS, SERVER_PORT = "server.address", "server.port"

# --- our own attributes ---
RUN_ID = "jackfield.run.id"
STOP_REASON = "jackfield.run.stop_reason"
DEPTH = "jackfield.run.depth"
COST, CURRENCY = "jackfield.usage.cost", "jackfield.usage.currency"
PASSAGES, DOCUMENTS = "jackfield.retrieval.passages", "jackfield.retrieval.documents"
TEXTS = "jackfield.embeddings.texts"

# --- events ---
DETAILS_EVENT = "gen_ai.client.inference.operation.details"
RETRY_EVENT, RESET_EVENT = "jackfield.retry", "jackfield.stream_reset"
APPROVAL_EVENT, TRIMMED_EVENT = "jackfield.approval", "jackfield.history_trimmed"

# --- metrics ---
TOKEN_USAGE = "gen_ai.client.token.usage"  # noqa: S105 - of a model
OPERATION_DURATION = "gen_ai.client.operation.duration"
FIRST_CHUNK_METRIC = "gen_ai.client.operation.time_to_first_chunk"
EACH_CHUNK_METRIC = "gen_ai.client.operation.time_per_output_chunk"
TOOL_DURATION = "gen_ai.execute_tool.duration"
AGENT_DURATION = "gen_ai.invoke_agent.duration"

UNKNOWN_TOOL = "unknown"
"""Stands for a tool the agent does not have, because a name made up by the model counts as conversation text."""

_PROVIDERS: Mapping[str, str] = {
    "oai": "openai",
    "openai_responses": "openai",
    "azure": "azure.ai.openai",
    "qwen_dashscope": "dashscope",
    "qwenvl_dashscope": "dashscope",
    "qwenaudio_dashscope": "dashscope",
}


def provider_of(backend: str) -> str:
    """Return the conventions' name for the provider behind a backend, or the backend's own name if they have none."""
    return _PROVIDERS.get(backend, backend)
