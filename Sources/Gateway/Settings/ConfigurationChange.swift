import Answers
package import Bytes
package import Text

/// A key whose value is not the one it was.
package struct ConfigurationChange: Hashable, Sendable {
    /// The full name, such as `policy.launchInterval`.
    package let key: String
    /// The values, as a configuration file has them; of a file that was read again, what it holds.
    package let old: JSONValue
    package let new: JSONValue

    package init(key: String, old: JSONValue, new: JSONValue) {
        self.key = key
        self.old = old
        self.new = new
    }

    /// Appends the change as an object of `key`, `old` and `new`.
    package func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("key")
        writer.string(self.key)
        for (name, value) in [("old", self.old), ("new", self.new)] {
            writer.key(name)
            value.text.withByteView { writer.raw($0) }
        }
        writer.endObject()
    }
}
