/// A good bearer token as its holder showed it.
package struct ShownToken: Sendable {
    let text: [UInt8]
    package let token: BearerToken
}
