import Engine
import Gateway
import Wire

/// The body of a progress report. If it has the usual layout of workers, it is read without parsing.
enum ProgressTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        var taken = ByteBuffer()
        // With a leading line feed it is still JSON, but the body is parsed.
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
