/**
 * A strategy: LangChain's `trimMessages`, over the last messages.
 *
 *     config = { keep = 8 }
 *
 * How many messages to keep; one of a round of two calls is three of them. The protocol is docs/protocol.md.
 */

import { createInterface } from "node:readline";

import { AIMessage, type BaseMessage, HumanMessage, SystemMessage, ToolMessage, trimMessages } from "@langchain/core/messages";

type Part = { type: string; text?: string; id?: string; name?: string; arguments?: string };
type Result = { call_id: string; name: string; content: string | Part[]; outcome: string };
type Event = { type: string; content?: string | Part[]; results?: Result[] };
type Message =
    | { type: "hello"; config: { keep?: number } }
    | { type: "compact"; use: number; events: Event[] }
    | { type: "over"; use: number };

function text(content: string | Part[] = []): string {
    return typeof content === "string" ? content : content.map((part) => part.text ?? "").join("");
}

/** The messages of an event, each with the place of the event as its id. */
function messages(event: Event, place: number): BaseMessage[] {
    const id = String(place);
    const parts = typeof event.content === "string" ? [] : (event.content ?? []);
    switch (event.type) {
        case "request":
        case "summary":
            return parts.length > 0 && parts.every((part) => part.type === "system")
                ? [new SystemMessage({ id, content: text(parts) })]
                : [new HumanMessage({ id, content: text(event.content) })];
        case "response": {
            const calls = parts.filter((part) => part.type === "tool_call");
            const tool_calls = calls.map((call) => ({ id: call.id, name: call.name ?? "", args: {} }));
            return [new AIMessage({ id, content: text(event.content), tool_calls })];
        }
        case "tool_results":
            return (event.results ?? []).map(
                (result) => new ToolMessage({ id, tool_call_id: result.call_id, name: result.name, content: text(result.content) }),
            );
        default:
            return []; // tokens that were spent: no model sees them
    }
}

/** The places of the events that are kept. */
async function keep(events: Event[], maxTokens: number): Promise<number[]> {
    const kept = await trimMessages(events.flatMap(messages), {
        maxTokens,
        strategy: "last",
        tokenCounter: (counted) => counted.length,
        startOn: ["human", "ai"], // a result is nothing without its call
    });
    return [...new Set(kept.map((message) => Number(message.id)))];
}

function tell(message: object): void {
    process.stdout.write(`${JSON.stringify(message)}\n`);
}

let config: { keep?: number } = {};
tell({ type: "greeting", retrace: 1, role: "strategy", name: "langchain-trim", serves: "many" });
for await (const line of createInterface({ input: process.stdin })) {
    const message = JSON.parse(line) as Message;
    if (message.type === "hello") {
        config = message.config;
    } else if (message.type === "compact") {
        const { use, events } = message;
        try {
            if (!(typeof config.keep === "number" && config.keep >= 1)) {
                throw new Error("config.keep says how many messages to keep, such as { keep = 8 }");
            }
            const places = await keep(events, config.keep);
            tell(places.length === events.length ? { type: "unchanged", use } : { type: "compacted", use, events: places });
        } catch (error) {
            tell({ type: "failed", use, message: String(error) });
        }
    }
}
