// Asks a server by the TypeScript SDK: client.mjs FOLDER PACKAGE URL MODE [TOOL ARGUMENTS]...
//
// PACKAGE: "sdk" (1.x) or "client" (2.x) of the packages in FOLDER; MODE of the latter: "legacy", "auto", or a revision. Prints
// the revision, the names of the tools, and the result of each call.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [folder, name, url, mode, ...calls] = process.argv.slice(2)
const require = createRequire(pathToFileURL(`${folder}/none.js`))
const load = (path) => require(`@modelcontextprotocol/${name}${path}`)
const { Client } = load(name === 'sdk' ? '/client/index.js' : '')
const { StreamableHTTPClientTransport } = load(name === 'sdk' ? '/client/streamableHttp.js' : '')

const negotiation = mode === 'legacy' || mode === 'auto' ? mode : { pin: mode }
const client = new Client({ name: 'scenario', version: '1' }, { versionNegotiation: { mode: negotiation } })
const transport = new StreamableHTTPClientTransport(new URL(url))
await client.connect(transport)
const { tools } = await client.listTools()
const answers = []
for (let i = 0; i < calls.length; i += 2) {
  const result = await client.callTool({ name: calls[i], arguments: JSON.parse(calls[i + 1]) })
  const { isError = false, content, structuredContent = null } = result
  answers.push({ isError, text: content[0].text, structured: structuredContent })
}
const revision = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion
console.log(JSON.stringify({ revision, tools: tools.map((tool) => tool.name), answers }))
await client.close()
