package reach

import (
	"fmt"
	"strings"
)

// linePrefix is the prefix of lines for the control host. The login may print other lines before.
const linePrefix = "orrery-host"

// sudoScript is the script that the login shell starts: it becomes root. Neither of the two scripts
// contains single quotes, exclamation marks or line ends, which some login shells would interpret.
const sudoScript = `if [ "$(id -u)" -eq 0 ]; then exec /bin/sh -c "$@"; fi; ` +
	`command -v sudo >/dev/null || { printf "\n` + linePrefix + ` sudo it is not installed\n"; exit 0; }; ` +
	`e=$(sudo -n true 2>&1) || { printf "\n` + linePrefix + ` sudo %s\n" "$e"; exit 0; }; ` +
	`exec sudo -n -- /bin/sh -c "$@"`

// rootScript is the script that root runs. It looks for the program in a directory to which only root
// may write, under its digest. If the program is missing, the script receives it. Then it executes
// the program. $1 is the number of arguments for the program, and the arguments follow. After that
// come, for each architecture, its name as uname prints it, the digest, and the sizes of both
// programs.
var rootScript = strings.Join([]string{
	`LC_ALL=C; export LC_ALL; umask 022`,
	`say() { printf "\n` + linePrefix + ` %s\n" "$(printf %s "$*" | tr "\n" " ")"; }`,
	`end() { say "$@"; exit 0; }`,
	`c=$1; a=; shift; while [ "$c" -gt 0 ]; do a="$a $1"; shift; c=$((c-1)); done`,
	`m=$(uname -m); until [ $# -eq 0 ] || [ "$1" = "$m" ]; do shift 4; done`,
	`[ $# -gt 0 ] || end arch "$m"`,
	`d=${ORRERY_STATE:-/var/lib/orrery}/helper; w=$d/$2`,
	`e=$(mkdir -p "$d" 2>&1) || end put "$e"`,
	`{ [ -d "$d" ] && [ -O "$d" ] && [ -z "$(find "$d" -maxdepth 0 -perm /022)" ]; } || end open "$d"`,
	`if [ -x "$w/orrery" ]; then touch "$w"; else ` +
		// Remove former versions that were not started for two months.
		`find "$d" -mindepth 1 -maxdepth 1 -mtime +60 -exec rm -rf {} +; ` +
		`f=$(mktemp -d "$d/.XXXXXX" 2>/dev/null) || end put "no directory can be created in $d"; ` +
		`trap "rm -rf $f" EXIT; chmod 755 "$f"; say want "$m"; ` +
		`e=$( { head -c "$3" > "$f/orrery" && { [ "$4" -eq 0 ] || head -c "$4" > "$f/orrery-guest"; } && chmod 755 "$f"/* && sync "$f"/*; } 2>&1) || end put "$e"; ` +
		`s=$(cat "$f"/* | sha256sum); [ "${s%% *}" = "$2" ] || end put "the received data does not match what was sent"; ` +
		`mv -T "$f" "$w" 2>/dev/null || [ -x "$w/orrery" ] || end put "it could not be moved into place"; rm -rf "$f"; fi`,
	`say have; exec "$w/orrery" $a`,
}, "; ")

// commandLine returns the command line for a host. It works in any login shell.
func commandLine(arms []build, args []string) string {
	words := []string{"exec", "/bin/sh", "-c", quote(sudoScript), "orrery", quote(rootScript), "orrery",
		fmt.Sprint(len(args))}
	for _, a := range args {
		words = append(words, quote(a))
	}
	for _, a := range arms {
		words = append(words, a.machine, a.digest, fmt.Sprint(a.sizes[0]), fmt.Sprint(a.sizes[1]))
	}
	return strings.Join(words, " ")
}

// quote quotes a text that contains no single quotes.
func quote(text string) string { return "'" + text + "'" }
