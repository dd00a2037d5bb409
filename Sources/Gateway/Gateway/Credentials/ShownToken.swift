/// A good bearer token as its holder showed it.
struct ShownToken: Sendable {
    let text: [UInt8]
    let token: BearerToken
}
