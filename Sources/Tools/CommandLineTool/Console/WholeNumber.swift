/// Whole numbers of what a gateway says, which may be anything.
extension Int {
    /// The number without its fraction: 0 for what is none, and the nearest there is for one that is too large.
    package init(saturating number: Double) {
        if let exact = Int(exactly: number.rounded(.towardZero)) {
            self = exact
        } else {
            self = number.isNaN ? 0 : number < 0 ? .min : .max
        }
    }
}
