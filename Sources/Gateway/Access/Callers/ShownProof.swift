/// How somebody has shown who they are.
package enum ShownProof {
    case token(ShownToken)
    case certificate(CertificateHolder)
}
