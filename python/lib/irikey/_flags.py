"""Sets of bits: the columns ``flags`` and ``spoofing_flags``. Bits and names never change."""

from __future__ import annotations

import enum


class Flags(enum.IntFlag):
    """What was noticed or repaired while a record was read; the bits of the column ``flags``.

    pandas takes a member for a list of flags. There, use its number: ``frame["flags"] & irikey.Flags.EXCLUDED.value``.
    """

    NOT_UTF8 = 1 << 0
    EXCLUDED = 1 << 1
    CONTROL = 1 << 2
    STRAY_PERCENT = 1 << 3
    STRAY_DELIM = 1 << 4
    NOT_UCSCHAR = 1 << 5
    BIDI_CONTROL = 1 << 6
    HOST_NOT_IDNA = 1 << 7
    BAD_A_LABEL = 1 << 8
    PORT_RANGE = 1 << 9
    ASSUMED_SCHEME = 1 << 10
    QUERY_CHARSET = 1 << 11
    TRIMMED = 1 << 12
    INNER_SPACE = 1 << 13
    CHARACTER_REFERENCE = 1 << 14
    BACKSLASH = 1 << 15
    SPLIT = 1 << 16
    BRACKETED = 1 << 17
    STRAY_BYTES = 1 << 18
    CUT = 1 << 19


class SpoofingFlags(enum.IntFlag):
    """What may mislead a reader; the bits of the column ``spoofing_flags``. For pandas, see :class:`irikey.Flags`."""

    MIXED_SCRIPT = 1 << 0
    ASCII_LOOK_ALIKE = 1 << 1
    DISCOURAGED = 1 << 2
    INVISIBLE = 1 << 3
    JOINER = 1 << 4
    HIDDEN_BIDI_CONTROL = 1 << 5
    BIDI_STRUCTURE = 1 << 6
    SPACE_LOOK_ALIKE = 1 << 7
    DELIM_LOOK_ALIKE = 1 << 8
    COMPATIBILITY = 1 << 9
    NOT_NFC = 1 << 10
    OVERLONG = 1 << 11
    SURROGATE = 1 << 12
    ENCODED_SLASH = 1 << 13
    HIDDEN_DOTS = 1 << 14
    DOUBLE_ENCODED = 1 << 15
    ENCODED_CONTROL = 1 << 16
    USERINFO_HOST = 1 << 17
