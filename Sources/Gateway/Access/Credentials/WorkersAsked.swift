/// Whether workers are asked who they are, as far as the state remembers it.
///
/// A copy of a state that lacks `token.key` would let everybody in where the gateway that made it asked.
package enum WorkersAsked: Hashable, Sendable {
    /// Workers are asked, and have something to show: from now on the state says so.
    case asked
    /// Workers are not asked, as there is no `token.key` in this folder: refused when the state says that they were.
    case notAsked(folder: String)
    /// Nothing is remembered, and nothing refused: `wakegate dev` asks nobody, and where no token was ever issued but
    /// other machines reach the edge, nobody gets in.
    case unrecorded
}
