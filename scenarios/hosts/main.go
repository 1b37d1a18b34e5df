// Hosts makes this machine act as several hosts, and injects failures into them.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"orrery/internal/rehearsal"
	"orrery/test/hosts"
	"orrery/test/need"
)

const usage = `usage: scenarios/hosts/run N [COMMAND...]   run N hosts until the command ends (or until Ctrl-C)
       scenarios/hosts/run VERB HOST...      do something to a running host; HOST is its number

  exec HOST COMMAND...   run a command on the host as root (not by SSH)
  ssh HOST [COMMAND...]  run ssh on host 1, to HOST
  cut HOST [to|from]     take its link down; with to or from, drop one direction only
  join HOST              restore its link
  kill HOST              end all its processes, as on a power failure
  boot HOST              start it again
  pause HOST             freeze it
  resume HOST            thaw it
  slow HOST BYTES        limit its disk to BYTES per second (0: no limit)

HOSTS_NAME names the set of hosts (hosts); two sets need two names.
`

func main() {
	rehearsal.RunRole()
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	err := do(os.Args[1], os.Args[2:])
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() > 0 {
		os.Exit(status.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hosts:", err)
		os.Exit(1)
	}
}

func name() string {
	if name := os.Getenv("HOSTS_NAME"); name != "" {
		return name
	}
	return "hosts"
}

func do(word string, rest []string) error {
	if n, err := strconv.Atoi(word); err == nil {
		return keepUp(n, rest)
	}
	verb, ok := verbs[word]
	if !ok || len(rest) == 0 {
		return fmt.Errorf("%q is unknown, or HOST is missing\n%s", word, usage)
	}
	number, err := strconv.Atoi(rest[0])
	if err != nil {
		return fmt.Errorf("%q is not a host number", rest[0])
	}
	all, err := hosts.Attach(name())
	if err != nil {
		return err
	}
	defer all.Close() //nolint:errcheck // others keep them up
	return verb(all, number, rest[1:])
}

var verbs = map[string]func(all *rehearsal.Hosts, number int, rest []string) error{
	"exec": func(all *rehearsal.Hosts, number int, rest []string) error {
		return through(all.At(number).Command(rest...))
	},
	"ssh": func(all *rehearsal.Hosts, number int, rest []string) error {
		return through(all.At(1).Command(append([]string{"ssh", hosts.NameOf(number)}, rest...)...))
	},
	"cut": func(all *rehearsal.Hosts, number int, rest []string) error {
		switch way := rehearsal.Direction(strings.Join(rest, " ")); way {
		case "":
			return all.At(number).Disconnect(hosts.Both)
		case hosts.Both, hosts.To, hosts.From:
			return all.At(number).Disconnect(way)
		default:
			return fmt.Errorf("%q is not a direction: to, from, or none for both", way)
		}
	},
	"join":   func(all *rehearsal.Hosts, number int, _ []string) error { return all.At(number).Reconnect() },
	"kill":   func(all *rehearsal.Hosts, number int, _ []string) error { return all.At(number).Kill() },
	"boot":   func(all *rehearsal.Hosts, number int, _ []string) error { return all.At(number).Boot() },
	"pause":  func(all *rehearsal.Hosts, number int, _ []string) error { return all.At(number).Pause() },
	"resume": func(all *rehearsal.Hosts, number int, _ []string) error { return all.At(number).Resume() },
	"slow": func(all *rehearsal.Hosts, number int, rest []string) error {
		rate, err := strconv.ParseInt(strings.Join(rest, " "), 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number of bytes", strings.Join(rest, " "))
		}
		return all.At(number).SetDiskRate(rate)
	},
}

// keepUp has hosts as long as a command runs, or until it is told to end.
func keepUp(n int, command []string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	options := hosts.Options{Count: n, Name: name()}
	if program, err := filepath.Abs("bin/orrery"); err == nil && there(program) {
		options.Programs = map[string]string{"orrery": program}
	}
	if store := filepath.Join(need.State(), "store"); there(store) {
		options.Store = store
	}
	began := time.Now()
	all, err := hosts.Start(options)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d hosts, up in %.1f s\n", n, time.Since(began).Seconds())
	if len(command) == 0 {
		for i := 1; i <= n; i++ {
			fmt.Fprintf(os.Stderr, "%-5s %s\n", hosts.NameOf(i), hosts.AddressOf(i))
		}
		<-stop
		return all.Close()
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "HOSTS_NAME="+name())
	return errors.Join(through(cmd), all.Close())
}

// through runs a command with this one's streams.
func through(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
