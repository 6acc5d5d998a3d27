// koder-monitor for OpenCode 1.x: calls `koder-monitor hook EVENT` as the runtimes do that
// have hook commands, and hands over what it says. Whatever goes wrong is silence.
// Written by `koder-monitor install opencode`, which also removes it.

import { spawn } from "node:child_process"

const PROGRAM = "@PROGRAM@"
const LIMIT_MS = 5000

function ask(event, payload) {
  return new Promise((resolve) => {
    let said = ""
    const child = spawn(PROGRAM, ["hook", event, "--runtime", "opencode"], {
      stdio: ["pipe", "pipe", "ignore"],
      timeout: LIMIT_MS,
    })
    child.on("error", () => resolve({}))
    child.stdin.on("error", () => {})
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (text) => (said += text))
    child.on("close", () => {
      try {
        resolve(JSON.parse(said) ?? {})
      } catch {
        resolve({})
      }
    })
    child.stdin.end(JSON.stringify(payload))
  })
}

export const KoderMonitor = async ({ client, directory, worktree }) => {
  const fresh = new Set() // sessions whose start is still to be told
  const held = new Set() // sessions that go on because the stop check held them

  const payload = (session, more) => ({
    session_id: session,
    cwd: directory,
    project_dir: worktree && worktree !== "/" ? worktree : directory,
    ...more,
  })

  const told = async (session, events, more) => {
    const texts = []
    for (const event of events) {
      const { context } = await ask(event, payload(session, more))
      if (context) texts.push(context)
    }
    return texts.join("\n\n")
  }

  return {
    event: async ({ event }) => {
      if (event.type === "session.created" && !event.properties.info?.parentID) {
        fresh.add(event.properties.info?.id)
      }
      if (event.type !== "session.idle") return
      const session = event.properties.sessionID
      const active = held.delete(session)
      const { hold } = await ask("stop", payload(session, { stop_hook_active: active }))
      if (!hold || active) return
      held.add(session)
      try {
        await client.session.promptAsync({
          path: { id: session },
          body: { parts: [{ type: "text", text: hold }] },
        })
      } catch {
        held.delete(session)
      }
    },

    "chat.message": async ({ sessionID }, output) => {
      const part = output.parts.find((one) => one.type === "text")
      if (!part || held.has(sessionID)) return
      const events = ["user-prompt-submit"]
      if (fresh.delete(sessionID)) events.unshift("session-start")
      const text = await told(sessionID, events, { prompt: part.text })
      if (text) part.text += `\n\n${text}`
    },

    "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
      await remember(callID, "pre-tool-use", payload(sessionID, {
        tool_name: tool,
        tool_input: output.args,
      }))
    },

    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      const before = warnings.get(callID)
      warnings.delete(callID)
      const more = { tool_name: tool, tool_input: args ?? {} }
      const after = await told(sessionID, ["post-tool-use"], more)
      const text = [before, after].filter(Boolean).join("\n\n")
      if (text && typeof output.output === "string") output.output += `\n\n${text}`
    },
  }
}

const warnings = new Map() // call to what a guard said before it, told with its result

async function remember(call, event, payload) {
  const { context } = await ask(event, payload)
  if (context) warnings.set(call, context)
}
