import Synchronization

/// What the handler of a continued task says of it: how far it is, and the texts that a person sees.
final class TaskReporting: Sendable {
    private struct Texts {
        var title: String?
        var subtitle: String?
    }

    /// The most bytes of a text that the gateway takes.
    static let textBytesMax = 256

    let progress: BackgroundTaskProgress
    private let texts: Mutex<Texts>
    private let signal: ChangeSignal

    /// - Parameters:
    ///   - title: that of the request.
    ///   - subtitle: that of the request.
    ///   - changed: is called when there is something new to tell, once until `newest` is asked for.
    init(title: String?, subtitle: String?, changed: @escaping @Sendable () -> Void = {}) {
        self.texts = Mutex(Texts(title: title, subtitle: subtitle))
        self.signal = ChangeSignal(changed)
        self.progress = BackgroundTaskProgress(totalUnitCount: 0, signal: self.signal)
    }

    var title: String? { self.texts.withLock { $0.title } }
    var subtitle: String? { self.texts.withLock { $0.subtitle } }

    /// Whether something is new since `newest` was asked for last.
    var isChanged: Bool { self.signal.isRaised }

    /// Shows other texts; nil leaves one as it is.
    func update(title: String?, subtitle: String?) {
        self.texts.withLock { texts in
            if let title { texts.title = Self.shown(title) }
            if let subtitle { texts.subtitle = Self.shown(subtitle) }
        }
        self.signal.raise()
    }

    /// What there is to tell now.
    func newest() -> TaskProgress {
        self.signal.lower()
        let (counts, texts) = (self.progress.counts, self.texts.withLock { $0 })
        return TaskProgress(
            completed: counts.completed,
            total: counts.total,
            title: texts.title,
            subtitle: texts.subtitle
        )
    }

    /// The text, cut between two characters where the gateway would not take all of it.
    private static func shown(_ text: String) -> String {
        var left = self.textBytesMax
        return String(
            text.prefix { character in
                left -= character.utf8.count
                return left >= 0
            }
        )
    }
}
