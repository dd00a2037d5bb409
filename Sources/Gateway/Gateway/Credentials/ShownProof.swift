/// How the caller of a route has shown who it is.
enum ShownProof {
    case token(ShownToken)
    case certificate(CertificateHolder)

    /// The topics it may reach.
    var scope: TopicScope {
        switch self {
        case .token(let shown): shown.token.scope
        case .certificate(let holder): holder.scope
        }
    }
}
