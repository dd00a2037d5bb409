import PostgresStore
import Wire

extension PostgresElements {
    /// The bytes of every element that is whole; nil for NULL.
    var all: [[UInt8]?] {
        var rest = self
        var all: [[UInt8]?] = []
        while let element = rest.next() { all.append(element.bytes?.array) }
        return all
    }
}
