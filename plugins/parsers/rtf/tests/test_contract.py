"""This distribution keeps Jackfield's contracts."""

from __future__ import annotations

from typing import ClassVar

from jackfield_testkit.suites import ParserSuite, PluginSuite

TEA = rb"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fnil\fcharset0 Calibri;}{\f1\fnil\fcharset2 Symbol;}}
{\stylesheet{\ql Normal;}{\s1\outlinelevel0 heading 1;}}{\*\generator Riched20 10.0;}
{\info{\title Tea}{\author Ada}}\viewkind4\uc1
\pard\s1\b Tea\b0\par
\pard Gr\'fcner {\i Tee}, \u32511?\u33590?.\par
\pard{\pntext\f1\'B7\tab}{\*\pn\pnlvlblt\pnf1{\pntxtb\'B7}}boil\par
{\pntext\f1\'B7\tab}wait\par
\trowd\cellx100\cellx200\pard\intbl sort\cell water\cell\row
\trowd\cellx100\cellx200\pard\intbl black\cell boiling\cell\row
\pard The end.\par}
"""
CHINESE = (
    rb"{\rtf1\ansi\ansicpg936{\fonttbl{\f0\fcharset134 SimSun;}}\pard\f0 "
    + b"".join(b"\\'%02x" % byte for byte in "数据分析".encode("gbk"))
    + rb"\par\pard "
    + b"".join(b"\\u%d?" % ord(character) for character in "第二段")
    + rb"\par}"
)


class TestPlugin(PluginSuite):
    dist = "jackfield-rtf"


class TestRtf(ParserSuite):
    component = "jackfield-rtf/rtf"
    samples: ClassVar = {
        "tea.rtf": (TEA, ("Tea", "Grüner Tee, 绿茶.", "- boil\n- wait", "| black | boiling |", "The end.")),
        "中文.rtf": (CHINESE, ("数据分析", "第二段")),
    }
    unreadable: ClassVar = {
        "text.rtf": b"just a text",
        "white.rtf": rb"{\rtf1\ansi \par}",
        "picture.rtf": rb"{\rtf1{\pict\pngblip 89504e470d0a}}",
        "word.rtf": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504),
    }
    hostile: ClassVar = {
        "groups.rtf": rb"{\rtf1 a" + b"{" * 200_000,
        "notes.rtf": rb"{\rtf1 a" + rb"{\footnote b" * 20_000,
        "binary.rtf": rb"{\rtf1 a\bin9999999999 b",
        "numbers.rtf": rb"{\rtf1 a" + rb"\u9999999999" * 20_000,
        "cells.rtf": rb"{\rtf1\trowd\clvmrg\cellx1\intbl " + b"x" * 500_000 + rb"\cell\row" + rb"\cell\row" * 20_000,
        "links.rtf": rb'{\rtf1 a{\field{\*\fldinst HYPERLINK "b"}' + rb"{\fldrslt c" * 20_000,
        "escapes.rtf": rb"{\rtf1 a" + rb"\'" * 100_000,
    }

    @staticmethod
    def make_file(count: int) -> bytes:
        return rb"{\rtf1 " + rb"A paragraph of {\b some} words.\par " * (40 * count) + b"}"
