# Completes the commands, flags and values of dynamic-scoring.
_dynamic_scoring() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} flags= words= paths=

    COMPREPLY=()
    # readline takes the `=` of --name=value as a word of its own.
    if [[ $current == = ]]; then
        current=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD == 1)); then
        words='@COMMANDS@'
    else
        case "${COMP_WORDS[1]} $before" in
@VALUES@
        *)
            case ${COMP_WORDS[1]} in
@FLAGS@
            esac
            [[ $current != -* && $words$paths ]] || words=$flags paths=
            ;;
        esac
    fi
    if [[ $paths ]]; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen "-$paths" -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
        [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
    fi
}
complete -F _dynamic_scoring dynamic-scoring
