package launch

import (
	"path"
	"slices"
	"strings"
)

// Program finds the local program that plays an image: the argument vector
// listed under the image's name without tag and digest, or under the last
// element of that name.
func Program(images map[string][]string, image string) ([]string, bool) {
	name := imageName(image)
	for _, key := range []string{name, path.Base(name)} {
		if argv := images[key]; len(argv) > 0 {
			return argv, true
		}
	}
	return nil, false
}

// imageName cuts tag and digest. A colon before the last slash is the port of
// a registry, not a tag.
func imageName(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name
}

// arguments composes the argument vector. The program plays the image's
// entrypoint; a command replaces it, as always, unless the command is just the
// program called by its own name (["/lockstep", "run", "leader"]): that file
// does not exist here, and the program that plays it does.
func arguments(program []string, image string, command, args []string) []string {
	argv := program
	if len(command) > 0 {
		argv = command
		if called := path.Base(command[0]); called == path.Base(program[0]) || called == path.Base(imageName(image)) {
			argv = slices.Concat(program, command[1:])
		}
	}
	return slices.Concat(argv, args)
}
