/// How the caller of a route has shown who it is.
package enum ShownProof {
    case token(ShownToken)
    case certificate(CertificateHolder)

    /// The topics it may reach.
    package var scope: TopicScope {
        switch self {
        case .token(let shown): shown.token.scope
        case .certificate(let holder): holder.scope
        }
    }
}
