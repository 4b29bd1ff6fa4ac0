/* Act with an exported policy: an observation in each line of the input, an action in each line of the output.

       edp export runs/mine policy.c
       cc -std=c99 -O2 act.c policy.c -lm -o act
       echo "20.5 3.0 31.0 0 0 1 0.25" | ./act

   An argument is the seed of the random numbers. With -march=native, it is several times as fast. */

#include <stdio.h>
#include <stdlib.h>

#define POLICY_DECLARATIONS
#include "policy.c"

int main(int count, char **words)
{
    float observation[POLICY_OBSERVATIONS], action[POLICY_ACTIONS];
    policy_random random;
    int i;
    policy_seed(&random, count > 1 ? (uint32_t)strtoul(words[1], NULL, 10) : 0);
    for (;;) {
        for (i = 0; i < POLICY_OBSERVATIONS; i++)
            if (scanf("%f", &observation[i]) != 1)
                return i == 0 && feof(stdin) ? EXIT_SUCCESS : EXIT_FAILURE;
        if (policy_act_random(observation, &random, action)) {
            fprintf(stderr, "the observation has NaN or Inf: hold the last action, or fall back\n");
            return EXIT_FAILURE;
        }
        for (i = 0; i < POLICY_ACTIONS; i++)
            printf("%s%s=%.6g", i ? " " : "", policy_action_names[i], (double)action[i]);
        printf("\n");
    }
}
