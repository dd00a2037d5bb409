package import Wire

/// The head of a response: made once, filled anew for every answer.
///
/// It is kept as the field block that HTTP/2 sends, so that a push's answer is written once; HTTP/1 takes it apart.
package final class Response {
    private(set) var status = 200
    /// The status and all fields, as `FieldEncoder` writes them.
    package private(set) var block = ByteBuffer()
    /// Where the fields begin behind the status.
    private var fieldsStart = 0

    package init() {
        self.begin(status: 200)
    }

    /// Forgets every field and starts over with `status` (200...999).
    package func begin(status: Int) {
        precondition(status >= 200 && status <= 999, "a final status has three digits")
        self.status = status
        self.block.removeAll()
        FieldEncoder.append(status: status, to: &self.block)
        self.fieldsStart = self.block.count
    }

    /// Starts over as the head of an event stream, which proxies must pass on at once: nginx buffers every response
    /// without `x-accel-buffering: no`, and a proxy that compresses holds events back.
    package func beginEventStream() {
        self.begin(status: 200)
        self.add("content-type", "text/event-stream")
        self.add("cache-control", "no-cache, no-transform")
        self.add("x-accel-buffering", "no")
    }

    /// Adds a field; the value is copied.
    ///
    /// - `name`: the name, in lower case.
    package func add(_ name: StaticString, _ value: ByteView) {
        FieldEncoder.append(ByteView(name), value, to: &self.block)
    }

    package func add(_ name: StaticString, _ value: StaticString) {
        FieldEncoder.append(ByteView(name), ByteView(value), to: &self.block)
    }

    /// Adds a field whose value, of at most 126 bytes, `write` appends.
    package func add(_ name: StaticString, _ write: (inout ByteBuffer) -> Void) {
        FieldEncoder.append(ByteView(name), to: &self.block, write)
    }

    /// Adds a field whose value is a decimal number.
    package func add(_ name: StaticString, _ value: Int64) {
        FieldEncoder.append(ByteView(name), to: &self.block) { $0.appendDecimal(value) }
    }

    /// Calls `body` with the name and the value of each field behind the status, valid during the call.
    package func forEachField(_ body: (ByteView, ByteView) -> Void) {
        FieldEncoder.forEachField(of: self.block.view.dropFirst(self.fieldsStart), body)
    }
}

/// The value of `date` fields (RFC 9110 §5.6.7), written once a second.
struct HTTPDate: ~Copyable {
    private static let weekdays: [StaticString] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months: [StaticString] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private var second: Int64?
    private var text = ByteBuffer()

    /// - Parameter second: since 1970, UTC.
    mutating func write(_ second: Int64, to buffer: inout ByteBuffer) {
        if self.second != second {
            self.second = second
            self.text.removeAll()
            self.compose(second)
        }
        buffer.append(self.text.view)
    }

    private mutating func compose(_ second: Int64) {
        let days = Int((second >= 0 ? second : second - 86_399) / 86_400)
        let time = Int(second) - days * 86_400
        // Years are counted from March, so that the odd day is their last; 400 of them have 146,097 days.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 2 : monthFromMarch - 10
        let year = yearOfEra + era * 400 + (month < 2 ? 1 : 0)
        self.text.append(Self.weekdays[(days % 7 + 7) % 7])
        self.text.append(", ")
        self.appendTwo(day)
        self.text.append(" ")
        self.text.append(Self.months[month])
        self.text.append(" ")
        self.text.appendDecimal(Int64(year))
        self.text.append(" ")
        self.appendTwo(time / 3600)
        self.text.append(":")
        self.appendTwo(time / 60 % 60)
        self.text.append(":")
        self.appendTwo(time % 60)
        self.text.append(" GMT")
    }

    private mutating func appendTwo(_ number: Int) {
        self.text.append(UInt8(truncatingIfNeeded: 0x30 + number / 10 % 10))
        self.text.append(UInt8(truncatingIfNeeded: 0x30 + number % 10))
    }
}
