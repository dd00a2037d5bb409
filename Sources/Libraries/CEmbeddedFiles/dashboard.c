#include "CEmbeddedFiles.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char api_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/api.js"
};
static const unsigned char bars_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/bars.js"
};
static const unsigned char base_css[] = {
#embed "../../Server/Gateway/Edge/Dashboard/base.css"
};
static const unsigned char bulk_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/bulk.js"
};
static const unsigned char cards_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/cards.js"
};
static const unsigned char chart_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/chart.js"
};
static const unsigned char device_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/device.js"
};
static const unsigned char devicelist_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/devicelist.js"
};
static const unsigned char devicetasks_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/devicetasks.js"
};
static const unsigned char diagnosis_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/diagnosis.js"
};
static const unsigned char dom_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/dom.js"
};
static const unsigned char durations_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/durations.js"
};
static const unsigned char feed_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/feed.js"
};
static const unsigned char firststeps_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/firststeps.js"
};
static const unsigned char format_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/format.js"
};
static const unsigned char icon_svg[] = {
#embed "../../Server/Gateway/Edge/Dashboard/icon.svg"
};
static const unsigned char index_html[] = {
#embed "../../Server/Gateway/Edge/Dashboard/index.html"
};
static const unsigned char inspector_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/inspector.js"
};
static const unsigned char listview_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/listview.js"
};
static const unsigned char live_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/live.js"
};
static const unsigned char main_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/main.js"
};
static const unsigned char overview_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/overview.js"
};
static const unsigned char panels_css[] = {
#embed "../../Server/Gateway/Edge/Dashboard/panels.css"
};
static const unsigned char push_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/push.js"
};
static const unsigned char pushlist_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/pushlist.js"
};
static const unsigned char route_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/route.js"
};
static const unsigned char series_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/series.js"
};
static const unsigned char strip_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/strip.js"
};
static const unsigned char table_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/table.js"
};
static const unsigned char tables_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/tables.js"
};
static const unsigned char task_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/task.js"
};
static const unsigned char tasktable_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/tasktable.js"
};
static const unsigned char testpush_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/testpush.js"
};
static const unsigned char theme_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/theme.js"
};
static const unsigned char timeline_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/timeline.js"
};
static const unsigned char topicswitch_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/topicswitch.js"
};
static const unsigned char views_css[] = {
#embed "../../Server/Gateway/Edge/Dashboard/views.css"
};
static const unsigned char waiting_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/waiting.js"
};
static const unsigned char whatif_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/whatif.js"
};
static const unsigned char words_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/words.js"
};
static const unsigned char workerlist_js[] = {
#embed "../../Server/Gateway/Edge/Dashboard/workerlist.js"
};

#define FILE(name, bytes) {name, bytes, sizeof bytes}

static const wakegate_embedded_file files[] = {
    FILE("api.js", api_js),
    FILE("bars.js", bars_js),
    FILE("base.css", base_css),
    FILE("bulk.js", bulk_js),
    FILE("cards.js", cards_js),
    FILE("chart.js", chart_js),
    FILE("device.js", device_js),
    FILE("devicelist.js", devicelist_js),
    FILE("devicetasks.js", devicetasks_js),
    FILE("diagnosis.js", diagnosis_js),
    FILE("dom.js", dom_js),
    FILE("durations.js", durations_js),
    FILE("feed.js", feed_js),
    FILE("firststeps.js", firststeps_js),
    FILE("format.js", format_js),
    FILE("icon.svg", icon_svg),
    FILE("index.html", index_html),
    FILE("inspector.js", inspector_js),
    FILE("listview.js", listview_js),
    FILE("live.js", live_js),
    FILE("main.js", main_js),
    FILE("overview.js", overview_js),
    FILE("panels.css", panels_css),
    FILE("push.js", push_js),
    FILE("pushlist.js", pushlist_js),
    FILE("route.js", route_js),
    FILE("series.js", series_js),
    FILE("strip.js", strip_js),
    FILE("table.js", table_js),
    FILE("tables.js", tables_js),
    FILE("task.js", task_js),
    FILE("tasktable.js", tasktable_js),
    FILE("testpush.js", testpush_js),
    FILE("theme.js", theme_js),
    FILE("timeline.js", timeline_js),
    FILE("topicswitch.js", topicswitch_js),
    FILE("views.css", views_css),
    FILE("waiting.js", waiting_js),
    FILE("whatif.js", whatif_js),
    FILE("words.js", words_js),
    FILE("workerlist.js", workerlist_js),
};

const wakegate_embedded_file *const wakegate_dashboard_files = files;
const size_t wakegate_dashboard_file_count = sizeof files / sizeof files[0];
