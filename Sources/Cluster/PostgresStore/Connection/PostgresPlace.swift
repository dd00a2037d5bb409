/// Where one version of a row lies (`ctid`): the number of its page, and its own on the page, from 1.
///
/// Whoever has locked the row finds it there without an index. Another version of it lies elsewhere, and another row
/// may lie there once this version is gone.
package struct PostgresPlace: Hashable, Sendable {
    package let block: UInt32
    package let offset: UInt16

    package init(block: UInt32, offset: UInt16) {
        self.block = block
        self.offset = offset
    }

    /// Where no row lies.
    package static let nowhere = PostgresPlace(block: 0, offset: 0)
}
