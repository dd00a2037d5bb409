/// Two words mixed into one: quick, and known to everybody. It serves checksums and numbers that nobody profits from
/// guessing; where a stranger chooses the bytes, `HashKey` hashes them.
@usableFromInline
package enum FoldedProduct {
    /// Both halves of a product, folded into one: each bit of the result depends on nearly all bits of both factors.
    @inlinable
    package static func of(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
