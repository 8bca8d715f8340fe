// An identity provider, oidc-provider, behind TLS, with one client whose tokens live for 3 s. Prints its URL.
//
//   node provider.mjs FOLDER CERTIFICATE KEY ID SECRET     FOLDER: of the packages
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [folder, cert, key, id, secret] = process.argv.slice(2)
const { Provider } = await import(createRequire(pathToFileURL(`${folder}/none.js`)).resolve('oidc-provider'))

const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) })
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const issuer = `https://127.0.0.1:${server.address().port}`
const scopes = ['score:read', 'score:write']
const client = { client_id: id, client_secret: secret, grant_types: ['client_credentials'], redirect_uris: [], response_types: [] }
const features = { clientCredentials: { enabled: true }, devInteractions: { enabled: false }, introspection: { enabled: true } }
const provider = new Provider(issuer, { clients: [client], features, scopes, ttl: { ClientCredentials: 3 } })
server.on('request', provider.callback())
console.log(issuer)
