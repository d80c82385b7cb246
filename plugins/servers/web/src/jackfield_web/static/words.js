// The texts of the page, in English and Chinese.

const WORDS = {
  en: {
    skip: "Skip to the question", newChat: "New", find: "Search conversations", menu: "Conversations", agent: "Agent",
    export: "Export", asMarkdown: "As Markdown", asJson: "As JSON (can be imported)", import: "Import", rename: "Rename",
    noHits: "No conversations found.", notExported: "{name} is not an exported conversation.", attach: "Attach files", question: "Ask anything", send: "Send", stop: "Stop", token: "Access token",
    open: "Open", wrongToken: "This token is not valid.", you: "You", reasoning: "Reasoning", copy: "Copy",
    copied: "Copied", edit: "Edit", retry: "Retry", remove: "Delete", undo: "Undo", removed: "Conversation deleted.",
    empty: "Ask a question to get started.", lost: "Connection lost. Reconnecting…",
    unreachable: "The server cannot be reached. Try again in a moment.", editing: "You are editing an earlier question.", cancel: "Cancel",
    allow: "Allow", deny: "Deny", decline: "Decline", reason: "Why not? The model will see this.", exact: "Exact arguments",
    file: "Changes {path}", newFile: "Creates {path}", asks: "{name} asks", yourTurn: "It is your turn", change: "Change",
    willAllow: "{name}: allowed", willDeny: "{name}: denied", allowAll: "Allow all {n}", denyAll: "Deny all {n}",
    pending: "{n} decisions are pending. They will be sent together.", always: "Always allow {name} in this conversation",
    inDoubt: "This call may already have been made.", wants: "{agent} wants to call {name}", reply: "Your reply",
    result: "Result", running: "running…", failed: "failed: {error}", seconds: "{n} s", tokens: "{n} tokens",
    settings: "Settings", model: "Model", automatic: "automatic", temperature: "Temperature", top_p: "Top p", max_tokens: "Maximum tokens per answer",
    seed: "Seed", sources: "Sources", source: "Source", page: "page {n}", larger: "Larger", smaller: "Smaller", timeline: "Timeline", step: "Step", time: "Time", duration: "Duration",
    tokensHead: "Tokens", cost: "Cost", total: "Total", events: "Events", copyEvents: "Copy events", close: "Close", stopped: "Stopped: {reason}", error: "The run failed: {error}", trying: "Trying again in {n} s: {error}",
    trimmed: "{n} earlier messages no longer fit in the context.", handedOff: "{to} continues.", denied: "Denied",
    earlier: "Earlier messages ({n})", previous: "Previous version", next: "Next version", tooLarge: "{name} is too large.",
    showAll: "Show all {n} characters", tooMuch: "{name} is too large: the files of a question may total {n} MB.", unreadable: "{name} cannot be read.", picture: "picture", noAnswer: "No answer.",
    reasons: {
      empty_reply: "the model did not answer", turn_limit: "the turn limit was reached",
      tool_call_limit: "the tool call limit was reached", token_limit: "the token limit was reached",
      cost_limit: "the cost limit was reached", time_limit: "the time limit was reached", cancelled: "you stopped it",
    },
  },
  zh: {
    skip: "跳到输入框", newChat: "新对话", find: "搜索对话", menu: "对话列表", agent: "智能体", export: "导出",
    asMarkdown: "导出为 Markdown", asJson: "导出为 JSON（可再导入）", import: "导入", rename: "重命名", noHits: "没有找到。",
    notExported: "{name} 不是导出的对话。",
    attach: "添加文件", question: "请输入问题", send: "发送", stop: "停止", token: "访问令牌", open: "打开",
    wrongToken: "令牌无效。", you: "你", reasoning: "思考过程", copy: "复制", copied: "已复制", edit: "编辑",
    retry: "重试", remove: "删除", undo: "撤销", removed: "对话已删除。", empty: "输入一个问题开始对话。",
    lost: "连接已断开，正在重试…", unreachable: "无法连接服务器，请稍后再试。", editing: "正在编辑较早的问题。", cancel: "取消", allow: "允许", deny: "拒绝", decline: "谢绝",
    reason: "为什么不？模型会看到。", exact: "完整参数", file: "修改 {path}", newFile: "新建 {path}", asks: "{name} 提问",
    yourTurn: "轮到你了", change: "更改", willAllow: "{name}：已允许", willDeny: "{name}：已拒绝", allowAll: "全部允许（{n}）",
    denyAll: "全部拒绝（{n}）", pending: "还有 {n} 项待决定，将一起发送。",
    always: "在此对话中始终允许 {name}", inDoubt: "此调用可能已经执行过。", wants: "{agent} 想调用 {name}", reply: "你的回复",
    result: "结果", running: "运行中…", failed: "失败：{error}", seconds: "{n} 秒", tokens: "{n} 个词元",
    settings: "设置", model: "模型", automatic: "自动", temperature: "温度", top_p: "Top p", max_tokens: "回答的最大词元数", seed: "随机种子",
    sources: "来源", source: "来源", page: "第 {n} 页", larger: "放大", smaller: "缩小", timeline: "时间线", step: "步骤", time: "时间", duration: "时长",
    tokensHead: "词元", cost: "费用", total: "合计", events: "事件", copyEvents: "复制事件", close: "关闭", stopped: "已结束：{reason}", error: "运行失败：{error}", trying: "{n} 秒后重试：{error}",
    trimmed: "有 {n} 条较早的消息已超出上下文。", handedOff: "由 {to} 继续。", denied: "已拒绝",
    earlier: "更早的消息（{n}）", previous: "上一个版本", next: "下一个版本", tooLarge: "{name} 太大。",
    showAll: "显示全部 {n} 个字符", tooMuch: "{name} 太大：一个问题的文件总共不能超过 {n} MB。", unreadable: "无法读取 {name}。", picture: "图片", noAnswer: "没有回答。",
    reasons: {
      empty_reply: "模型没有回答", turn_limit: "已达到轮数上限", tool_call_limit: "已达到工具调用上限",
      token_limit: "已达到词元上限", cost_limit: "已达到费用上限", time_limit: "时间已到", cancelled: "你已停止",
    },
  },
};

const language = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
const words = WORDS[language];

/** Return a text of the page, with `{name}` replaced by values. */
export function t(key, values = {}) {
  return words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** Return the reason why a run ended, in words; "" for a run that simply finished. */
export function reasonOf(code) {
  return words.reasons[code] ?? "";
}

/** Write the texts of the page into its elements. */
export function translate(root) {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const element of root.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(element.dataset.tLabel));
  for (const element of root.querySelectorAll("[data-t-placeholder]")) element.placeholder = t(element.dataset.tPlaceholder);
}
