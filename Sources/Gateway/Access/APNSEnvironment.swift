/// One of the two APNs that Apple runs: a provider's key or certificate is for one of them, or for both.
package enum APNSEnvironment: String, CaseIterable, Sendable {
    case development, production
}
