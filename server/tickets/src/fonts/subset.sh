#!/usr/bin/env bash
# Makes the fonts of this folder anew, from packages of Debian and npm. Needs apt-get, dpkg, npm and pyftsubset
# (Debian's `fonttools`). Only for a change of the fonts: the build takes the files as they lie here.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

apt-get download fonts-noto-core fonts-droid-fallback
for package in ./*.deb; do dpkg-deb --extract "$package" debian; done
for package in noto-sans-jp@0.4.3 noto-emoji@0.4.7; do
  tar --extract --gzip --file "$(npm pack --silent "@expo-google-fonts/$package")" --wildcards 'package/400Regular/*.ttf'
done
mkdir sources
find debian/usr/share/fonts/truetype/noto debian/usr/share/fonts-droid-fallback package -name '*.ttf' -exec mv {} sources/ \;
# Other versions of the packages may have other fonts: look at a few tickets before these sums change.
(cd sources && sha256sum --check --quiet "$here/sources.sha256")

subset() { # source, target, characters
  pyftsubset "sources/$1" --output-file="$here/$2" --unicodes="$3" \
    --layout-features="${features:-*}" --no-hinting --notdef-outline --name-IDs='*'
}
# No font draws code points for private use: what they look like is an agreement that a ticket has no part in.
public=U+0020-D7FF,U+F900-FFFD,U+10000-1FFFF

latin=U+0020-007E,U+00A0-03FF,U+0400-052F,U+1C80-1C8F,U+1D00-1DBF,U+1E00-1FFF,U+2000-218F,U+2C60-2C7F,U+2DE0-2E7F,U+A640-A69F,U+A720-A7FF,U+AB30-AB6F,U+FB00-FB06,U+FE20-FE2F,U+FFFD
subset NotoSans-Regular.ttf NotoSans-Regular.ttf "$latin"
subset NotoSans-Bold.ttf NotoSans-Bold.ttf "$latin"
for script in Arabic Armenian Bengali Devanagari Ethiopic Georgian Gujarati Gurmukhi Hebrew Kannada Khmer Lao Malayalam \
  Myanmar Oriya Sinhala Tamil Telugu Thaana Thai; do
  subset "NotoSans$script-Regular.ttf" "NotoSans$script-Regular.ttf" "$public"
done
subset NotoSansMath-Regular.ttf NotoSansMath-Regular.ttf U+2190-22FF,U+27C0-27FF
subset NotoSansSymbols-Regular.ttf NotoSansSymbols-Regular.ttf U+2190-2BFF
subset NotoSansSymbols2-Regular.ttf NotoSansSymbols2-Regular.ttf U+2190-27FF,U+2900-2BFF

# Han in its Chinese forms, and Hangul.
subset DroidSansFallback.ttf DroidSansFallback.ttf U+1100-11FF,U+2E80-D7A3,U+F900-FAFF,U+FE30-FE4F,U+FF01-FFEF
# Han in its Japanese forms: the characters of JIS X 0208. Vertical writing and half widths are of no use here.
python3 - > japanese.txt <<'PYTHON'
characters = set(range(0x3000, 0x3100)) | set(range(0x31F0, 0x3200)) | set(range(0xFF01, 0xFFF0))
for row in range(0xA1, 0xFF):
    for cell in range(0xA1, 0xFF):
        try:
            characters.update(map(ord, bytes([row, cell]).decode("euc_jp")))
        except UnicodeDecodeError:
            pass
print(",".join(f"{character:X}" for character in sorted(characters) if character > 0x2E7F))
PYTHON
features=ccmp,locl,mark,mkmk subset NotoSansJP_400Regular.ttf NotoSansJP-Regular.ttf "$(cat japanese.txt)"
# Digits have glyphs of their own there; they come from the Latin font.
subset NotoEmoji_400Regular.ttf NotoEmoji-Regular.ttf U+00A9,U+00AE,U+200D,U+20E3,U+2122-3299,U+FE0F,U+1F000-1FAFF,U+E0020-E007F
