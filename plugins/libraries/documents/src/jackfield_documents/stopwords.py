"""Stop words: words that do not distinguish one text from another."""

from __future__ import annotations

_ENGLISH = """
a an the this that these those such same other another each every all both any some few more most much many own
i me my mine myself we us our ours ourselves you your yours yourself yourselves
he him his himself she her hers herself it its itself they them their theirs themselves one ones
who whom whose which what when where why how whether
am is are was were be been being have has had having do does did doing done
can could will would shall should may might must cannot
and or but nor so yet if then else than as because while until although though unless since
of at by for with about against between into through during before after above below to from up down in out on off
over under again further once here there also just only very too quite rather even still ever never not no yes
please tell give show say said know want let get got
don't doesn't didn't isn't aren't wasn't weren't won't wouldn't can't couldn't shouldn't haven't hasn't hadn't
i'm i've i'll i'd you're you've you'll we're we've we'll they're they've they'll he's she's it's that's there's what's
let's ain't s t d ll re ve m don doesn didn isn aren wasn weren won wouldn couldn shouldn haven hasn hadn ie eg etc
"""
_CHINESE = """
的 了 和 与 及 或 在 是 有 为 以 于 对 从 到 把 被 将 让 使 向 给 由 用
按 比 跟 同 而 且 但 但是 并 并且 因为 所以 如果 那么 虽然 然而 不过 以及 或者 还是 就是 也 都 就
还 又 再 才 只 很 太 更 最 不 没 没有 着 过 地 得 之 其 此 该 这 那 这个 那个
这些 那些 这里 那里 这样 那样 我 你 您 他 她 它 我们 你们 他们 她们 它们 自己 大家 什么 怎么 怎样 怎么样 如何
哪 哪个 哪些 哪里 谁 几 多少 为什么 吗 呢 吧 啊 呀 哦 嗯 请 请问 可以 可 能 能够 会 要 应
应该 需要 想 一个 一些 一下 一 个 些 等 等等 中 上 下 里 告诉 关于 的话 时候
"""

_ABOUT_DOCUMENTS_ENGLISH = """
document documents doc docs docx file files pdf pdfs paper papers article articles attachment attachments
upload uploads uploaded attached summarize summarise summarized summarised summary summaries summarization
mention mentioned
"""
_ABOUT_DOCUMENTS_CHINESE = """
文档 文件 文章 文中 论文 附件 全文 原文 本文 上传 这篇 这份 总结 概括 概述 归纳 摘要 介绍 内容 提到 提及
"""

_FILLERS = """
whole entire complete full brief briefly short shortly long concise detailed detail good write make create provide
main key important central point points idea ideas finding findings takeaway takeaways message messages topic topics
sentence sentences word words line lines paragraph paragraphs page pages bullet bullets list
english chinese german french text texts book books report reports manual manuals handbook content contents
say says contain contains cover covers two three four five six seven eight nine ten
整个 整篇 整本 整份 全书 通篇 全部 简要 简单 简短 详细 主要 句话 段话 字 页 条 点 本书 书 报告 手册 中文 英文
帮 我 用 写 做 给出 出 来 一 二 两 三 四 五 六 七 八 九 十 百
"""

STOP_WORDS: frozenset[str] = frozenset((_ENGLISH + _CHINESE).split())
"""Stop words in lowercase, English and Chinese together because texts mix them."""

ABOUT_DOCUMENTS: tuple[str, ...] = tuple((_ABOUT_DOCUMENTS_ENGLISH + _ABOUT_DOCUMENTS_CHINESE).split())
"""Words in questions that refer to the document itself, not to its content."""

FILLERS: tuple[str, ...] = tuple(_FILLERS.split())
"""Words about a summary's form rather than its subject."""
