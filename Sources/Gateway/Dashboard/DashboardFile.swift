/// A file of the dashboard's page.
package struct DashboardFile: Sendable {
    /// The name of what `GET /` is answered with.
    package static let first = "index.html"

    package let bytes: [UInt8]
    /// The media type, as the field `content-type` has it.
    package let type: StaticString

    /// The file of this name; nil when there is none.
    package static func find(_ name: String) -> DashboardFile? {
        Self.files[name]
    }

    /// The names of all files, sorted.
    package static var names: [String] { Self.files.keys.sorted() }

    private static let files: [String: DashboardFile] = [
        "index.html": page(PackageResources.index_html),
        "base.css": style(PackageResources.base_css),
        "panels.css": style(PackageResources.panels_css),
        "views.css": style(PackageResources.views_css),
        "icon.svg": DashboardFile(bytes: PackageResources.icon_svg, type: "image/svg+xml"),
        "api.js": script(PackageResources.api_js),
        "bars.js": script(PackageResources.bars_js),
        "bulk.js": script(PackageResources.bulk_js),
        "cards.js": script(PackageResources.cards_js),
        "chart.js": script(PackageResources.chart_js),
        "device.js": script(PackageResources.device_js),
        "devicelist.js": script(PackageResources.devicelist_js),
        "devicetasks.js": script(PackageResources.devicetasks_js),
        "dom.js": script(PackageResources.dom_js),
        "feed.js": script(PackageResources.feed_js),
        "firststeps.js": script(PackageResources.firststeps_js),
        "format.js": script(PackageResources.format_js),
        "inspector.js": script(PackageResources.inspector_js),
        "listview.js": script(PackageResources.listview_js),
        "main.js": script(PackageResources.main_js),
        "overview.js": script(PackageResources.overview_js),
        "push.js": script(PackageResources.push_js),
        "pushlist.js": script(PackageResources.pushlist_js),
        "route.js": script(PackageResources.route_js),
        "series.js": script(PackageResources.series_js),
        "strip.js": script(PackageResources.strip_js),
        "table.js": script(PackageResources.table_js),
        "tables.js": script(PackageResources.tables_js),
        "task.js": script(PackageResources.task_js),
        "tasktable.js": script(PackageResources.tasktable_js),
        "testpush.js": script(PackageResources.testpush_js),
        "theme.js": script(PackageResources.theme_js),
        "timeline.js": script(PackageResources.timeline_js),
        "topicswitch.js": script(PackageResources.topicswitch_js),
        "waiting.js": script(PackageResources.waiting_js),
        "whatif.js": script(PackageResources.whatif_js),
        "words.js": script(PackageResources.words_js),
    ]

    private static func page(_ bytes: [UInt8]) -> DashboardFile {
        DashboardFile(bytes: bytes, type: "text/html; charset=utf-8")
    }

    private static func style(_ bytes: [UInt8]) -> DashboardFile {
        DashboardFile(bytes: bytes, type: "text/css; charset=utf-8")
    }

    private static func script(_ bytes: [UInt8]) -> DashboardFile {
        DashboardFile(bytes: bytes, type: "text/javascript; charset=utf-8")
    }
}
