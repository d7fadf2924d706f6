"""An agent: an Agent of pydantic-ai, with its own model and its own tool loop.

    config = { model = "openai:gpt-4.1-mini" }    # any model of pydantic-ai; its key is to be in `pass_env`

Without a model it is a FunctionModel that plays the script of scripted.py.
"""

import retrace_program
from pydantic_ai import Agent, Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import infer_model
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_messages import Messages, add_sent, arguments, content
from scripted import script


async def resume(run):
    calls = {}  # the text of the arguments of each call, until it is made
    model = infer_model(run.config["model"]) if "model" in run.config else scripted()
    agent = Agent(
        Reporting(model, run, calls),
        instructions=run.instructions,
        tools=[tool(spec, run, calls) for spec in run.tools],
        retries=1000,  # when to stop is retrace's business
    )
    await agent.run(message_history=Messages(run.events).messages)


class Reporting(WrapperModel):
    """A model whose responses are reported."""

    def __init__(self, model, run, calls):
        super().__init__(model)
        self.run, self.calls = run, calls

    async def request(self, messages, model_settings, model_request_parameters):
        for part in messages[-1].parts:
            if isinstance(part, ToolReturnPart) and self.calls.pop(part.tool_call_id, None) is not None:
                self.run.own_result(refused(part))
        sent = retrace_program.Sent()
        add_sent(messages, sent)
        response = await super().request(messages, model_settings, model_request_parameters)
        for call in response.parts:
            if isinstance(call, ToolCallPart):
                self.calls[call.tool_call_id] = arguments(call)
        self.run.report(event(response), sent)
        return response


def tool(spec, run, calls):
    """A tool of the environment."""

    async def call(cx, **_):
        result = await run.call(cx.tool_call_id, cx.tool_name, calls.pop(cx.tool_call_id))
        if result["outcome"] != "ok":
            raise ToolFailed(content(result["content"]))
        return content(result["content"])

    return Tool.from_schema(call, spec["name"], spec.get("description"), spec["parameters"], takes_ctx=True)


def refused(part):
    """The result of a call that pydantic-ai did not make: there is no such tool, or the arguments are no JSON."""
    outcome = "not_found" if part.retry and part.retry.cause == "unknown_tool" else "error"
    text = part.model_response_str(wrap_if_error=False)
    return {"call_id": part.tool_call_id, "name": part.tool_name, "content": text, "outcome": outcome}


def event(response):
    made = []
    for part in response.parts:
        if isinstance(part, TextPart):
            made.append({"type": "text", "text": part.content})
        elif isinstance(part, ToolCallPart):
            call = {"id": part.tool_call_id, "name": part.tool_name, "arguments": arguments(part)}
            made.append({"type": "tool_call", **call})
    usage = {"input_tokens": response.usage.input_tokens, "output_tokens": response.usage.output_tokens}
    return {"type": "response", "content": made, "model": response.model_name, "usage": usage}


def scripted():
    steps = script()

    def answer(messages, info):
        step = next(steps)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in step])

    return FunctionModel(answer)


retrace_program.agent("pydantic-ai", resume)
