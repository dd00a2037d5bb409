import Engine
import Gateway
import Wire

/// The body of a report of progress, which is read without being taken apart where workers write it as they all do.
enum ProgressTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        var taken = ByteBuffer()
        // A line feed in front is JSON, too, and has the body taken apart.
        taken.append(UInt8(ascii: "\n"))
        taken.append(input)
        let plain = try? RequestBody.progress(input)
        try promise(plain == (try? RequestBody.progress(taken.view)), "it means something else in another layout")
        guard let plain else { return }
        let lengths = [plain.title, plain.subtitle].map { $0?.utf8.count ?? 0 }
        try promise(lengths.allSatisfy { $0 <= 256 }, "a text is longer than may be")
        try promise(max(plain.completed, plain.total) < 1 << 53, "a count is past its bound")
    }
}
